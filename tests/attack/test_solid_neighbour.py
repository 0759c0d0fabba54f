"""Bob on the node of alice's job: he cannot signal, join, change or read it, nor use its gateway.

Row "Neighbour on the node" of what was attacked and found solid; test_neighbour.py explores the
node with a program, from a job and from a session.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support.client import Api, Json, Visitor
from tests.support.cluster import Cluster, wait_for


def _try(cluster: Cluster, machine: str, command: str) -> subprocess.CompletedProcess[str]:
    return cluster.attempt("exec", "--user", "bob", machine, "--", "sh", "-c", command, seconds=90)


@pytest.fixture(scope="module")
def lab(researcher: Api, session: Json) -> Visitor:
    """Alice at work in it."""
    return researcher.open(session["id"], "jupyterlab")


@pytest.fixture(scope="module")
def processes(cluster: Cluster, session: Json, lab: Visitor) -> list[str]:
    """Alice's processes on the node."""
    found = cluster.run(session["node"], "pgrep", "-u", "alice").split()
    assert len(found) > 5
    return found


def _each(
    cluster: Cluster, session: Json, processes: list[str], command: str, user: str = "bob"
) -> list[str]:
    """The processes ($p) for which a user's command succeeds."""
    script = (
        f"for p in {' '.join(processes)}; do ({command}) >/dev/null 2>&1 && echo $p; done; true"
    )
    return cluster.shell(session["node"], script, user=user).split()


def test_these_commands_work_for_alice_herself(
    cluster: Cluster, session: Json, processes: list[str]
) -> None:
    """Otherwise the refusals below would show nothing."""
    for command in (
        "kill -0 $p",
        "ls -A /proc/$p/fd | grep -q .",
        "ls -A /proc/$p/cwd/ | grep -q .",
    ):
        assert _each(cluster, session, processes, command, "alice"), command


@pytest.mark.parametrize("signal", ["TERM", "KILL", "STOP", "HUP", "USR1", "0"])
def test_he_cannot_signal_her_processes(
    cluster: Cluster, session: Json, processes: list[str], lab: Visitor, signal: str
) -> None:
    assert _each(cluster, session, processes, f"kill -{signal} $p") == []
    assert lab.get("/api/status").status_code == 200


@pytest.mark.parametrize(
    "file",
    [
        "environ",
        "fd/0",
        "fd",
        "root/",
        "cwd/",
        "maps",
        "mem",
        "auxv",
        "stack",
        "io",
        "exe",
        "ns/net",
        "map_files",
    ],
)
def test_he_cannot_read_her_processes(
    cluster: Cluster, session: Json, processes: list[str], file: str
) -> None:
    read = "ls -A" if file.endswith("/") or file in ("fd", "map_files") else "head -c1"
    # Some of these cannot be read even by their owner; other users get not a single byte.
    assert _each(cluster, session, processes, f"{read} /proc/$p/{file} | grep -q .") == []


@pytest.mark.parametrize(
    "file", ["oom_score_adj", "mem", "comm", "coredump_filter", "attr/current", "clear_refs"]
)
def test_he_cannot_write_to_her_processes(
    cluster: Cluster, session: Json, processes: list[str], lab: Visitor, file: str
) -> None:
    done = _each(cluster, session, processes, f"(echo 1 > /proc/$p/{file})")
    assert done == []
    assert lab.get("/api/status").status_code == 200


@pytest.mark.parametrize("option", ["-m", "-n", "-p", "-U", "-C", "-i"])
def test_he_cannot_enter_her_namespaces(
    cluster: Cluster, session: Json, processes: list[str], option: str
) -> None:
    assert _each(cluster, session, processes, f"nsenter -t $p {option} true") == []


SLURM = (
    "scancel {job}",
    "scancel --signal=USR1 {job}",
    "scancel --batch --signal=TERM {job}",
    "scancel --user=alice",
    "scontrol hold {job}",
    "scontrol requeue {job}",
    "scontrol suspend {job}",
    "scontrol update JobId={job} TimeLimit=1",
    "scontrol update JobId={job} TimeLimit=7:00:00",
    "scontrol update JobId={job} Name=evil",
    "scontrol update JobId={job} Comment=evil",
    "scontrol write batch_script {job} -",
    "scontrol top {job}",
    "scontrol update NodeName={node} State=DRAIN Reason=evil",
    "scontrol update PartitionName=main State=DOWN",
    "scontrol reconfigure",
    "scontrol shutdown",
    "srun --jobid={job} --overlap id",
    "srun --jobid={job} --overlap --uid=alice id",
    "sbatch --uid=alice --wrap=id",
    "sattach {job}.0 < /dev/null",
    "sattach {job}.batch < /dev/null",
    "sbcast --jobid={job} --force /etc/hostname /tmp/evil",
    "sacctmgr -i modify user alice set maxjobs=0",
    "sacctmgr -i add coordinator accounts=root names=bob",
    "sacctmgr -i modify user bob set adminlevel=admin",
    "strigger --set --jobid={job} --fini --program=/bin/true",
)


@pytest.mark.parametrize("command", SLURM)
def test_slurm_refuses_him_every_action_on_her_job(
    cluster: Cluster, session: Json, lab: Visitor, command: str
) -> None:
    limit = ["squeue", "-h", f"--jobs={session['job_id']}", "-o", "%T %l %j %k"]
    before = cluster.run("login", *limit)
    words = command.format(job=session["job_id"], node=session["node"])
    done = _try(cluster, "login", f"timeout 30 {words}")
    assert "uid=1001" not in done.stdout
    assert session["id"] not in done.stdout
    if command != "scancel --user=alice":  # reports that none of her jobs exist for him
        refused = done.returncode != 0 or "Invalid user id" in done.stderr
        assert refused, done.stdout + done.stderr
    assert cluster.run("login", *limit) == before
    assert lab.get("/api/status").status_code == 200
    nodes = cluster.run("login", "sinfo", "-h", "-o", "%t")
    assert "drain" not in nodes
    assert "down" not in nodes


@pytest.mark.parametrize(
    "path",
    [
        "/home/alice",
        "/home/alice/.slipway",
        "/home/alice/.slipway/sessions/{id}",
        "/home/alice/.slipway/logs/{id}.log",
        "/home/alice/.ssh",
        "/home/alice/.slipway/id_container",
        "/var/spool/slurmd",
        "/var/spool/slurmd/job{job}/slurm_script",
        "/var/spool/slurmd/job0{job}/slurm_script",
    ],
)
@pytest.mark.parametrize("machine", ["login", "node"])
def test_her_files_are_not_accessible(
    cluster: Cluster, session: Json, machine: str, path: str
) -> None:
    path = path.format(id=session["id"], job=session["job_id"])
    where = session["node"] if machine == "node" else "login"
    done = _try(cluster, where, f"test -d {path} && ls -A {path} || cat {path}")
    if done.returncode == 0:  # world-readable folders contain nothing of a job
        assert "slurm_script" not in done.stdout
        assert session["id"] not in done.stdout
        assert path == "/var/spool/slurmd"


HANDSHAKES = (
    "-tls1_2",
    "-tls1_3",
    "-tls1_1",
    "-tls1_2 -cert {own} -key {own}",
    "-tls1_3 -cert {own} -key {own}",
    "-servername {name}",
    "-servername {name} -cert {own} -key {own}",
    "-servername control.{id}.slipway -cert {own} -key {own}",
    "-servername portal",
    "-noservername",
    "-alpn h2",
)


@pytest.fixture(scope="module")
def own(cluster: Cluster) -> str:
    """A certificate that claims to be the portal's."""
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 "
    make += "-subj /CN=portal -keyout solid.pem -out solid.crt 2>/dev/null "
    make += "&& cat solid.crt >> solid.pem"
    cluster.shell("login", make, user="bob")
    return "/home/bob/solid.pem"


@pytest.fixture(scope="module")
def port(researcher: Api, session: Json, lab: Visitor) -> str:
    """The port of alice's gateway on its node."""
    log = researcher.ask("GET", f"/sessions/{session['id']}/log")["log"]
    found = re.search(r"Ready on \w+, port (\d+)", log)
    assert found, log
    return found[1]


def _asked_by_tls(place: str, options: str) -> str:
    request = "GET /api/status HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"
    client = f"timeout 10 openssl s_client -quiet -ign_eof -connect {place} {options}"
    return f"printf '{request}' | {client} 2>/dev/null"


def _asked_in_clear(place: str, data: str) -> str:
    return f"printf '{data}' | timeout 5 nc -q 3 {place} | tr -d '\\000'"


def test_these_requests_are_answered_by_other_servers(cluster: Cluster, session: Json) -> None:
    """Otherwise the silence below would show nothing."""
    for machine in (session["node"], "login"):
        assert "HTTP/1" in _try(cluster, machine, _asked_by_tls("portal:8443", "")).stdout
        assert "SSH-2.0" in _try(cluster, machine, _asked_in_clear("login 22", "x\\r\\n")).stdout


@pytest.mark.parametrize("options", HANDSHAKES)
def test_her_gateway_answers_only_the_portal(
    cluster: Cluster, session: Json, port: str, own: str, options: str
) -> None:
    name = f"jupyterlab.{session['id']}.slipway"
    words = options.format(own=own, name=name, id=session["id"])
    for machine in (session["node"], "login"):
        output = _try(cluster, machine, _asked_by_tls(f"{session['node']}:{port}", words)).stdout
        assert "HTTP/" not in output


@pytest.mark.parametrize(
    "data",
    [
        "GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
        "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n",
        "\\n",
        "SSH-2.0-x\\r\\n",
    ],
)
def test_her_gateway_sends_nothing_in_clear(
    cluster: Cluster, session: Json, port: str, data: str
) -> None:
    for machine in (session["node"], "login"):
        answer = _try(cluster, machine, _asked_in_clear(f"{session['node']} {port}", data)).stdout
        assert "HTTP/" not in answer
        assert "SSH-" not in answer


def test_her_session_still_works(lab: Visitor, researcher: Api, session: Json) -> None:
    wait_for("her app", lambda: lab.get("/api/status").status_code == 200)
    assert researcher.get(session["id"])["state"] == "RUNNING"
