"""Root's programs on nodes: odd names, a watchdog that is gone, steps that cannot be killed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator

import pytest

from tests.support.cluster import Cluster, wait_for

JOBS = "/run/slipway/gpu/jobs"
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
INTERVAL = 20
"""Seconds between two health checks (cluster/etc/slurm/slurm.conf.in)."""
UNKILLABLE = 60
"""Seconds after which Slurm drains a node for a step that does not end."""
ODD_NAMES = [r"\013ShdPnd: zz", r"\013ShdPnd: 100", r"\377", r"\342\200\250ShdPnd: 1", r") X 1 2 3"]
"""As printf(1) and shells write them."""

# Allocates MiB of the GPU past any shim, under a name of its own, and keeps them.
HOLD = """#!/usr/bin/python3
import ctypes, time
ctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_ulonglong()
codes = [
    cuda.cuInit(0),
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
    cuda.cuCtxSetCurrent(context),
    cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t({mib} << 20)),
]
print("codes", *codes, flush=True)
time.sleep(300)
"""
ASK = """
import sys
sys.path.insert(0, "/usr/local/sbin/slipway-gpu")
from portal.node.gpu.slurm import ask
found = ask({job}, "n1")
print(found.over, found.gres[0].name)
"""
# Gets the descriptor of a FUSE connection from another job, reads its requests and answers none.
HOLDER = """#!/usr/bin/python3
import array, os, socket, time
server = socket.socket(socket.AF_UNIX)
server.bind({path!r})
server.listen()
print("listens", flush=True)
_, found, _, _ = server.accept()[0].recvmsg(1, socket.CMSG_LEN(4))
fuse = array.array("i", found[0][2])[0]
print("has it", flush=True)
while True:
    try:
        os.read(fuse, 1 << 20)
    except OSError as error:
        print("aborted", error.errno, flush=True)
        break
time.sleep(300)
"""
# Mounts a file system, hands its descriptor to that job, and waits for a file in it.
STUCK = """#!/bin/sh
exec unshare --user --map-root-user --mount python3 - << 'END'
import array, ctypes, os, socket, struct, time
libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open("/dev/fuse", os.O_RDWR)
place = b"/tmp/stuck-%d" % os.getpid()
os.mkdir(place)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fuse
if libc.mount(b"x", place, b"fuse.\\x0bx", 6, options):
    raise SystemExit("cannot mount: %d" % ctypes.get_errno())
unique = struct.unpack("=IIQQ", os.read(fuse, 1 << 20)[:24])[2]
flags = struct.pack("=IIIIHHII36x", 7, 31, 0, 0, 0, 0, 1 << 17, 1)
os.write(fuse, struct.pack("=IiQ", 16 + len(flags), 0, unique) + flags)
other = socket.socket(socket.AF_UNIX)
other.connect({path!r})
other.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fuse]))])
os.close(fuse)
print("waits", flush=True)
os.stat(place + b"/file")
END
"""
SLEEP = "#!/bin/sh\nsleep 300\n"
VICTIM = "#!/bin/sh\necho $$ > {path}\nsleep 300\n"
# Stops the process of another job at its exit, until it is let go on.
TRACER = """#!/usr/bin/python3
import ctypes, os, time
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
print("seized", ptrace(0x4206, int(open({path!r}).read()), 0, 0x40), flush=True)
time.sleep(300)
"""

Submit = Callable[..., str]


def state(cluster: Cluster, job: str) -> str:
    """A job's state."""
    argv = ["squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T"]
    return cluster.run("login", *argv).strip()


def reached(cluster: Cluster, job: str, *states: str, seconds: float = 60) -> None:
    """Wait until a job is in one of these states."""
    wait_for(f"job {job} to be {states}", lambda: state(cluster, job) in states, seconds)


def output(cluster: Cluster, job: str) -> str:
    """What a job has printed."""
    return cluster.shell("login", f"cat /home/*/root-{job}.out", check=False)


def nodes(cluster: Cluster) -> dict[str, str]:
    """State and reason of each node."""
    lines = cluster.run("login", "sinfo", "--noheader", "--Node", "--format=%N %T %E")
    return {line.split()[0]: line.partition(" ")[2] for line in lines.splitlines()}


def drained(cluster: Cluster) -> list[str]:
    """The nodes that take no jobs, with their reasons."""
    return [f"{name} {text}" for name, text in nodes(cluster).items() if "drain" in text]


@pytest.fixture
def submit(cluster: Cluster) -> Iterator[Submit]:
    """Submit a script as alice or bob; their jobs end with the test."""
    submitted: list[str] = []

    def run(
        script: str, *options: str, node: str = "n1", name: str = "odd", user: str = "alice"
    ) -> str:
        argv = ["sbatch", "--parsable", f"--chdir=/home/{user}", "--output=root-%j.out"]
        argv += ["--mem=100M"]
        argv += ["--cpus-per-task=1", f"--nodelist={node}", *options]
        # The shell makes the bytes, since no argument of ours could hold all of them.
        shell = f"{shlex.join(argv)} --job-name=\"$(printf '{name}')\""
        job = cluster.run("login", "sh", "-c", shell, user=user, stdin=script).strip()
        submitted.append(job)
        return job

    yield run
    if submitted:
        cluster.run("login", "scancel", *submitted)
    cluster.shell("login", "rm -f /home/alice/root-*.out /home/bob/root-*.out")


def starts(cluster: Cluster) -> list[float]:
    """When the watchdog was started lately."""
    text = cluster.run("n1", "cat", "/run/slipway/gpu/watch/heartbeat")
    found: list[float] = json.loads(text)["starts"]
    return found


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_processs_name_protects_nobody(cluster: Cluster, submit: Submit, name: str) -> None:
    """B1: one such process ended the watchdog for all on its node."""
    before = starts(cluster)
    raw = name.encode().decode("unicode_escape").encode("latin-1")
    script = HOLD.format(name=raw, mib=3000)
    job = submit(script, "--gres=shard:1")
    reached(cluster, job, "FAILED")
    assert "codes 0 0 0 0" in output(cluster, job)
    assert f"job {job}: ended " in cluster.ctl("logs", "n1")
    assert starts(cluster) == before


@pytest.mark.parametrize("name", [*ODD_NAMES, "Invalid job id"])
def test_a_jobs_name_changes_nothing(cluster: Cluster, submit: Submit, name: str) -> None:
    """B2: its job got no share, or its living job was over, and the watchdog ended."""
    before = starts(cluster)
    job = submit(HOLD.format(name=b"python3", mib=100), "--gres=shard:1", name=name)
    reached(cluster, job, "RUNNING")
    wait_for("its memory", lambda: "codes 0 0 0 0" in output(cluster, job))
    # The watchdog asks Slurm about a job that it has not seen for long: once more, as it would.
    said = cluster.run("n1", "python3", "-c", ASK.format(job=job))
    assert said.split() == ["False", "shard"]
    assert cluster.run("n1", "cat", f"{JOBS}/{job}/slice").startswith("version=1")
    assert starts(cluster) == before


def test_a_node_whose_watchdog_is_gone_drains_and_resumes(cluster: Cluster) -> None:
    assert drained(cluster) == []
    cluster.daemon("stop", "n1", "slipway-gpu")
    try:
        wait_for("n1 to drain", lambda: "drain" in nodes(cluster)["n1"], 3 * INTERVAL)
        assert "slipway: the GPU watchdog does not run" in nodes(cluster)["n1"]
        assert "drain" not in nodes(cluster)["n2"]  # which has no GPU
    finally:
        cluster.daemon("start", "n1", "slipway-gpu")
    wait_for("n1 to resume", lambda: drained(cluster) == [], 3 * INTERVAL)


def test_an_administrators_drain_stays(cluster: Cluster) -> None:
    update = ["scontrol", "update", "NodeName=n2"]
    cluster.run("n2", *update, "State=DRAIN", "Reason=disk")
    try:
        cluster.run("n2", "env", "SLURMD_NODENAME=n2", "/etc/slurm/health.sh")
        assert "disk" in nodes(cluster)["n2"]
        assert "drain" in nodes(cluster)["n2"]
    finally:
        cluster.run("n2", *update, "State=UNDRAIN")


def test_file_systems_that_never_answer_drain_no_node(cluster: Cluster, submit: Submit) -> None:
    """B6: each such pair of jobs drained a node. Here on both nodes, at the same time."""
    path = "/var/tmp/stuck"
    holders, stuck = [], []
    for node, user in (("n1", "alice"), ("n2", "bob")):
        cluster.run(node, "rm", "-f", path)
        holders.append(submit(HOLDER.format(path=path), node=node, user=user))
        _says(cluster, holders[-1], "listens")
        stuck.append(submit(STUCK.format(path=path), node=node, user=user))
        _says(cluster, stuck[-1], "waits")
        _says(cluster, holders[-1], "has it")
    cluster.run("login", "scancel", *stuck)
    # Slurm sends SIGKILL after KillWait (10 s); a check comes within INTERVAL and takes 5 s.
    for job in stuck:
        _ended(cluster, job)
    for job in holders:
        _says(cluster, job, "aborted")
        assert state(cluster, job) == "RUNNING"  # nothing of it is ended
    wait_for("no node to be drained", lambda: drained(cluster) == [], UNKILLABLE + 2 * INTERVAL)


def test_who_traces_a_process_that_is_to_end_drains_no_node(
    cluster: Cluster, submit: Submit
) -> None:
    """B6 without FUSE: it is stopped at its exit, whatever it gets."""
    path = "/var/tmp/traced"
    victim = submit(VICTIM.format(path=path), node="n2")
    reached(cluster, victim, "RUNNING")
    wait_for("its PID", lambda: cluster.run("n2", "cat", path, check=False).strip() != "")
    tracer = submit(TRACER.format(path=path), node="n2")
    _says(cluster, tracer, "seized 0")
    cluster.run("login", "scancel", victim)
    _ended(cluster, victim)
    wait_for("no node to be drained", lambda: drained(cluster) == [], UNKILLABLE + 2 * INTERVAL)


def _ended(cluster: Cluster, job: str) -> None:
    wait_for(f"job {job} to end", lambda: state(cluster, job) in OVER, 4 * INTERVAL)


def _says(cluster: Cluster, job: str, words: str) -> None:
    wait_for(f"{words} of job {job}", lambda: words in output(cluster, job), 60)


def test_processes_of_a_lost_slurmstepd_are_ended(cluster: Cluster, submit: Submit) -> None:
    """B13: they lived on, on cores that Slurm had given away."""
    job = submit(SLEEP, node="n2")
    reached(cluster, job, "RUNNING")
    of_job = f"grep -l 'job_{job}/' /proc/[0-9]*/cgroup 2>/dev/null | cut -d/ -f3"
    steps = f"pgrep -f '^slurmstepd: .{job}[.]'"

    def pids(command: str) -> set[str]:
        return set(cluster.shell("n2", command, check=False).split())

    left = wait_for("its script", lambda: pids(of_job) - pids(steps) or None)
    lost = pids(steps)
    assert lost
    assert "processes and no slurmstepd" not in cluster.run(
        "n2", "slipway-gpu", "check", check=False
    )
    cluster.run("n2", "kill", "-KILL", *lost)
    cluster.run("login", "scancel", job)
    reached(cluster, job, *OVER, seconds=120)
    wait_for(
        "its processes to be gone",
        lambda: not left & pids(of_job),
        4 * INTERVAL,
    )
