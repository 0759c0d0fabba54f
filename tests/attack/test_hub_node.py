"""Bob beside alice's server of JupyterHub: on its node, on the login node and in his own server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.slurm.conftest import MakeHub
from tests.support.apps import Kernel
from tests.support.client import Api, Json
from tests.support.cluster import Cluster
from tests.support.hubs import HubApi, path_of, session_at, sized
from tests.support.neighbours import ALICE_UID, HOSTILE_PROGRAM, check_isolated

TINY = sized(1, "400m")
SECRETS = (
    "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if 'TOKEN' in k}))"
)
CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 "
    "-subj /CN=portal -keyout own.pem -out own.crt 2>/dev/null && cat own.crt >> own.pem"
)
NONE = "000"
"""What curl calls the status of no response."""

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def hers(make_hub: MakeHub) -> Iterator[HubApi]:
    """Alice, with a running server."""
    made = make_hub("alice")
    made.clean()
    made.running("", TINY)
    yield made
    made.clean()


@pytest.fixture(scope="module")
def secrets(hers: HubApi) -> dict[str, str]:
    """Her server's tokens, as her own notebook sees them."""
    kernel = Kernel(hers.visit())
    found: dict[str, str] = kernel.value(SECRETS)
    kernel.close()
    assert "JUPYTERHUB_API_TOKEN" in found
    return found


@pytest.fixture(scope="module")
def session(hers: HubApi, researcher: Api) -> Json:
    """The session that it runs in."""
    return session_at(researcher, path_of("alice"))


@pytest.fixture(scope="module")
def gateway(researcher: Api, session: Json) -> int:
    """The port of its gateway."""
    log = researcher.ask("GET", f"/sessions/{session['id']}/log")["log"]
    port = re.search(r"Ready on \w+, port (\d+)", log)
    assert port, log
    return int(port[1])


def _status(cluster: Cluster, machine: str, address: str, *more: str, user: str = "bob") -> str:
    """The status with which an address answers a request from a machine."""
    words = ["curl", "-sk", "-m", "8", "-o", "/dev/null", "-w", "%{http_code}", *more, address]
    return cluster.run(machine, *words, user=user, check=False).strip()


@pytest.mark.parametrize("machine", ["n1", "n2", "login", "ctl"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_only_jupyterhubs_proxy_reaches_the_port_of_its_servers(
    machine: str, scheme: str, cluster: Cluster, hers: HubApi
) -> None:
    address = f"{scheme}://portal:8090{path_of('alice')}api"
    for user in ("", "bob") if machine != "ctl" else ("",):
        assert _status(cluster, machine, address, user=user) == NONE
    claim = ("-H", "X-Forwarded-For: 127.0.0.1", "-H", "Host: portal")
    assert _status(cluster, machine, address, *claim, user="") == NONE


def test_jupyterhubs_proxy_does_reach_it(hers: HubApi) -> None:
    """Otherwise the silence above would show nothing."""
    assert hers.visit().get("/api/status").status_code == 200


@pytest.mark.parametrize("machine", ["login", "n1", "n2"])
def test_its_gateway_answers_nobody_without_the_portals_certificate(
    machine: str, cluster: Cluster, session: Json, gateway: int
) -> None:
    cluster.shell("login", CERTIFICATE, user="bob")
    names = [f"{app}.{session['id']}.slipway" for app in ("jupyterhub", "control", "jupyterlab")]
    for name in (*names, "localhost", session["node"]):
        to = f"::{session['node']}:{gateway}"
        address = f"https://{name}:{gateway}{path_of('alice')}api"
        for certificate in ((), ("--cert", "/home/bob/own.pem")):
            assert _status(cluster, machine, address, "--connect-to", to, *certificate) == NONE
    assert _status(cluster, machine, f"http://{session['node']}:{gateway}/") == NONE


def test_a_job_on_its_node_finds_no_way_in_and_no_token(
    cluster: Cluster, session: Json, gateway: int, secrets: dict[str, str]
) -> None:
    cluster.shell("login", CERTIFICATE, user="bob")
    folder = f"/home/alice/.slipway/sessions/{session['id']}"
    questions = {
        "user": ALICE_UID,
        "gateway": gateway,
        "job": session["job_id"],
        "names": [f"jupyterhub.{session['id']}.slipway", "localhost"],
        "certificates": ["", "/home/bob/own.pem"],
        "paths": [folder, f"{folder}/home", f"/home/alice/.slipway/logs/{session['id']}.log"],
        "canaries": [[value[:12], value[12:]] for value in sorted(set(secrets.values()))],
    }
    srun = ["srun", "--quiet", f"--nodelist={session['node']}", "--mem=200M", "--ntasks=1"]
    words = [*srun, "python3", "-", json.dumps(questions)]
    found = json.loads(cluster.run("login", *words, user="bob", stdin=HOSTILE_PROGRAM, seconds=120))
    assert found["processes"] > 3, "alice's processes are not on this node"
    check_isolated(found, gateway)
    assert "jupyterhub-singleuser" in " ".join(found["lines"])


def test_her_tokens_are_in_nothing_that_slurm_keeps(
    cluster: Cluster, session: Json, secrets: dict[str, str]
) -> None:
    """Not even in what alice and root may read of the job."""
    job = session["job_id"]
    script = f"scontrol write batch_script {job} -"
    for line in (
        f"scontrol show job -dd {job}",
        f"sacct --batch-script --jobs {job}",
        f"sacct --env-vars --jobs {job}",
        f"squeue --json --jobs {job}",
        script,
    ):
        told = cluster.shell("login", line, user="alice", check=False)
        for value in secrets.values():
            assert value not in told, line
    node = cluster.shell(session["node"], "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", check=False)
    log = cluster.shell("login", f"cat ~/.slipway/logs/{session['id']}.log", user="alice")
    for value in secrets.values():
        assert value not in node
        assert value not in log


REACH = """
import json, socket, ssl
found = {}
for host, port in PLACES:
    try:
        with socket.create_connection((host, port), 5) as plain:
            plain.sendall(b"GET /user/alice/api HTTP/1.1\\r\\nHost: portal\\r\\n\\r\\n")
            plain.settimeout(5)
            found[f"{host}:{port}"] = plain.recv(300).decode("latin-1")
    except OSError as error:
        found[f"{host}:{port}"] = ""
print(json.dumps(found))
"""


def test_his_own_server_reaches_neither_hers_nor_the_proxys_port(
    make_hub: MakeHub, session: Json, gateway: int
) -> None:
    his = make_hub("bob")
    his.running("", TINY)
    try:
        kernel = Kernel(his.visit())
        places = [["portal", 8090], [session["node"], gateway], ["hub", 8001]]
        found = kernel.value(REACH.replace("PLACES", json.dumps(places)))
        assert {place for place, said in found.items() if "HTTP/1.1 2" in said} == set()
        assert found["portal:8090"] == found["hub:8001"] == ""
        token = kernel.value(SECRETS)["JUPYTERHUB_API_TOKEN"]
        kernel.close()
        for path in ("/users/alice", "/users/alice/server/progress", "/users", "/proxy"):
            answer = his("GET", path, headers={"Authorization": f"token {token}"})
            assert answer.status_code in (403, 404), path
    finally:
        his.clean()
