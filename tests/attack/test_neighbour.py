"""A hostile neighbour on the same node, and the places where a secret could be exposed."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator

import pytest

from tests.support.apps import Kernel, Terminal
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.neighbours import ALICE_UID, HOSTILE_PROGRAM, check_isolated


@pytest.fixture(scope="module")
def canaries() -> dict[str, str]:
    """Words that alice's session is full of and that no other user may ever see."""
    places = ("variable", "file", "output", "memory")
    return {place: f"canary-{place}-{uuid.uuid4().hex}" for place in places}


@pytest.fixture(scope="module")
def session(researcher: Api, canaries: dict[str, str]) -> Json:
    """Alice's session, with a secret among its variables."""
    return researcher.running(env={"SECRET": canaries["variable"]})


@pytest.fixture(scope="module")
def working(researcher: Api, session: Json, canaries: dict[str, str]) -> Iterator[Json]:
    """All of its apps in use: a notebook, a running command, and every other app."""
    visitors = {app: researcher.open(session["id"], app) for app in _web_apps(researcher, session)}
    kernel = Kernel(visitors["jupyterlab"])
    assert canaries["variable"] in kernel.run("import os; print(os.environ['SECRET'])").text
    kernel.run(f"open('diary.txt', 'w').write({canaries['file']!r})")
    kernel.run(f"secret = {canaries['memory']!r}")
    terminal = Terminal(visitors["terminal"])
    terminal.run(f"(while echo {canaries['output']}; do sleep 1; done > /tmp/output &)")
    canaries |= {f"cookie of {app}": visitor.cookie for app, visitor in visitors.items()}
    canaries["token"] = str(researcher.http.headers["Authorization"]).split()[1]
    yield session
    terminal.close()
    kernel.close()


def _web_apps(researcher: Api, session: Json) -> list[str]:
    found: list[str] = [app["name"] for app in researcher.get(session["id"])["apps"]]
    # The one is no web app, the other needs a command first; both have tests of their own.
    return [app for app in found if app not in ("ssh", "webapp")]


def _questions(
    researcher: Api, session: Json, certificates: list[str], canaries: dict[str, str]
) -> Json:
    identifier = session["id"]
    apps = {*_web_apps(researcher, session), "control", "notebook"}
    folder = f"/home/alice/.slipway/sessions/{identifier}"
    log = researcher.ask("GET", f"/sessions/{identifier}/log")["log"]
    port = re.search(r"Ready on \w+, port (\d+)", log)
    assert port, log
    return {
        "user": ALICE_UID,
        "gateway": int(port[1]),
        "job": session["job_id"],
        "names": [f"{app}.{identifier}.slipway" for app in sorted(apps)] + ["localhost"],
        "certificates": certificates,
        "paths": [
            folder,
            f"{folder}/home",
            f"/home/alice/.slipway/logs/{identifier}.log",
            "/opt/slipway-run",
        ],
        "canaries": [[secret[:12], secret[12:]] for secret in canaries.values()],
    }


def test_a_job_on_the_same_node_gains_nothing(
    working: Json, researcher: Api, cluster: Cluster, canaries: dict[str, str]
) -> None:
    own = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 "
    own += "-subj /CN=portal -keyout own.pem -out own.crt 2>/dev/null && cat own.crt >> own.pem"
    cluster.shell("login", own, user="bob")
    questions = _questions(researcher, working, ["", "/home/bob/own.pem"], canaries)
    srun = ["srun", "--quiet", f"--nodelist={working['node']}", "--mem=200M", "--ntasks=1"]
    words = [*srun, "python3", "-", json.dumps(questions)]
    found = json.loads(cluster.run("login", *words, user="bob", stdin=HOSTILE_PROGRAM, seconds=120))
    assert found["processes"] > 3, "alice's processes are not on this node"
    check_isolated(found, questions["gateway"])
    assert "jupyter" in " ".join(found["lines"])
    assert {"scontrol show job -dd", "squeue --all --json"} <= set(found["asked"])


def test_a_session_on_the_same_node_gains_nothing(
    working: Json, researcher: Api, bob: Api, cluster: Cluster, canaries: dict[str, str]
) -> None:
    """Bob's own session presents its gateway's certificate, issued by the portal's own CA."""
    other = "n2" if working["node"] == "n1" else "n1"
    cluster.run("login", "scontrol", "update", f"NodeName={other}", "State=DRAIN", "Reason=test")
    try:
        session = bob.running()
    finally:
        cluster.run("login", "scontrol", "update", f"NodeName={other}", "State=RESUME")
    assert session["node"] == working["node"]
    kernel = Kernel(bob.open(session["id"], "jupyterlab"))
    certificate = "/opt/slipway-run/gateway.pem"
    questions = _questions(researcher, working, ["", certificate], canaries)
    questions["names"].append(f"control.{session['id']}.slipway")
    questions["paths"].remove("/opt/slipway-run")  # bob's own session
    assert kernel.value(f"import json, os\nprint(json.dumps(os.path.exists({certificate!r})))")
    code = HOSTILE_PROGRAM.split('if __name__ == "__main__"')[0]
    code = code.replace("from __future__ import annotations\n", "")
    assert not kernel.run(code).error
    found = kernel.value(f"print(report(**json.loads({json.dumps(questions)!r})))")
    # In his container bob sees no processes but his own.
    own = ("/opt/", "/proc/")
    found["sockets"] = [path for path in found["sockets"] if not path.startswith(own)]
    check_isolated(found, questions["gateway"])


def test_the_runner_token_is_exposed_nowhere(alice: Api, cluster: Cluster) -> None:
    """Read the session's secret while its job is pending, then search every public place for it."""
    cluster.run("login", "scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        session = alice.launch()["id"]
        wait_for("the job in the queue", lambda: session in cluster.queue("alice"))
        spec = f"/home/alice/.slipway/sessions/{session}/spec.json"
        token = json.loads(cluster.run("login", "cat", spec, user="alice"))["token"]
        assert cluster.attempt("exec", "--user", "bob", "login", "--", "cat", spec).returncode != 0
    finally:
        cluster.run("login", "scontrol", "update", "PartitionName=main", "State=UP")
    running = alice.wait_state(session, "RUNNING")
    visitor = alice.open(session, "jupyterlab")
    Kernel(visitor).run("1 + 1")
    job = running["job_id"]
    for secret in (token, visitor.cookie):
        _search(cluster, secret, session, job, running["node"])
    script = cluster.run("login", "scontrol", "write", "batch_script", job, "-", user="alice")
    assert session in script
    assert token not in script
    refused = cluster.attempt(
        "exec", "--user", "bob", "login", "--", "scontrol", "write", "batch_script", job, "-"
    )
    assert "Invalid user id" in refused.stderr
    assert session not in refused.stdout
    log = alice.ask("GET", f"/sessions/{session}/log")["log"]
    assert token not in log
    assert not cluster.shell("login", f"ls {spec}", check=False).strip(), "the spec is still there"


def _search(cluster: Cluster, secret: str, session: str, job: str, node: str) -> None:
    """Fail where the secret is found; on the node and the portal not even root may find it."""
    asked = {
        "scontrol": cluster.run("login", "scontrol", "show", "job", "-d", job, user="bob"),
        "squeue": cluster.run("login", "squeue", "--json"),
        "sacct": cluster.run("login", "sacct", "--json", "--jobs", job),
        "script": cluster.run("login", "sacct", "--batch-script", "--jobs", job, check=False),
        "environment": cluster.run("login", "sacct", "--env-vars", "--jobs", job, check=False),
        "portal's log": cluster.ctl("logs", "portal"),
    }
    assert job in asked["scontrol"]
    assert session in asked["squeue"]
    assert [place for place, text in asked.items() if secret in text] == []
    places = {
        node: "/proc/[0-9]*/environ /proc/[0-9]*/cmdline /var/spool/slurmd /home/alice/.slipway",
        "ctl": "/proc/[0-9]*/environ /proc/[0-9]*/cmdline /var/spool/slurmctld",
        "portal": "/proc/[0-9]*/environ /proc/[0-9]*/cmdline /var/lib/slipway /run/slipway",
    }
    for machine, where in places.items():
        # The secret is passed by standard input, or the search would find itself.
        search = f"grep -rlsF -D skip -f /dev/stdin {where}"
        found = cluster.run(machine, "sh", "-c", search, stdin=f"{secret}\n", check=False)
        assert not found.strip(), f"{machine}: {found}"
