"""What sessions promise, where the kernel has cgroup v2 only: limits, ends, devices and usage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.cgroup2.conftest import SLOW, Patient
from tests.support.apps import Kernel, Terminal
from tests.support.cgroups import MB, SEEN_IN_CGROUP
from tests.support.client import OVER, Json, Visitor
from tests.support.cluster import Cluster, wait_for

SMALL: Json = {"cpus": 1, "memory": "600m", "shared_memory": "600m"}


@pytest.fixture(scope="module")
def session(alice: Patient) -> Json:
    """A running session of one core and 600 MB, on a node with two cores."""
    return alice.running(resources=SMALL)


def opened(alice: Patient, session: Json, app: str) -> Visitor:
    """An app of a session, once it answers."""
    link = alice.ask("POST", f"/sessions/{session['id']}/apps/{app}")
    visitor = Visitor(link["url"])
    visitor.enter(SLOW)
    return visitor


@pytest.fixture(scope="module")
def terminal(alice: Patient, session: Json) -> Iterator[Terminal]:
    """The terminal of the session."""
    window = Terminal(opened(alice, session, "terminal"))
    yield window
    window.close()


def batch(cluster: Cluster, script: str, *options: str) -> str:
    """What a batch job has printed, at its end."""
    argv = ["sbatch", "--wait", "--mem=100M", "--output=/home/alice/job.out", *options]
    words = ["exec", "--user", "alice", "login", "--", *argv]
    cluster.attempt(*words, stdin=f"#!/bin/sh\n{script}\n", seconds=SLOW)
    return cluster.run("login", "cat", "/home/alice/job.out")


def test_there_is_cgroup_v2_only(cluster: Cluster) -> None:
    mounts = cluster.run("n1", "cat", "/proc/mounts").splitlines()
    kinds = {line.split()[2] for line in mounts if " cgroup" in line}
    assert kinds == {"cgroup2"}
    assert {"cpuset", "cpu", "memory"} <= set(
        cluster.run("n1", "cat", "/sys/fs/cgroup/cgroup.controllers").split()
    )


def test_a_job_reaches_the_gpu_with_a_share_only(cluster: Cluster) -> None:
    # There is no driver behind the device's number: whoever may open it reads ENXIO.
    assert "Operation not permitted" in batch(cluster, "cat /dev/nvidia0")
    assert "No such device or address" in batch(cluster, "cat /dev/nvidia0", "--gres=shard:1")


def test_the_figures_asked_for_are_read_in_the_terminal(terminal: Terminal) -> None:
    shown = terminal.run("cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cgroup.controllers", SLOW)
    assert str(600 * MB) in shown.split()
    assert {"memory", "cpuset"} <= set(shown.split())
    assert terminal.run("nproc", SLOW).split() == ["1"]


def test_usage_arrives_with_the_heartbeat(alice: Patient, session: Json) -> None:
    def usage() -> Json | None:
        # Calculated from the CPU time in two heartbeats.
        found: Json = alice.get(session["id"])["usage"] or {}
        return found if found.get("cpu_percent") is not None else None

    seen = wait_for("two heartbeats", usage, SLOW, pause=2)
    assert 0 < seen["memory"] <= seen["memory_peak"] <= 600 * MB
    assert 0 <= seen["cpu_percent"] <= 110


def test_jupyterlab_answers_and_sees_the_same_figures(alice: Patient, session: Json) -> None:
    lab = opened(alice, session, "jupyterlab")
    assert lab.get("/api/status").status_code == 200
    kernel = Kernel(lab)

    def connected() -> bool:
        with contextlib.suppress(AssertionError, OSError, TimeoutError):
            kernel.connect()
            return True
        return False

    wait_for("the kernel", connected, SLOW)
    output = kernel.run(SEEN_IN_CGROUP, SLOW)
    kernel.close()
    assert output.text == f"[{600 * MB}, 1, 1, 1]\n", output


def test_a_process_that_takes_more_is_killed_and_the_session_lives(
    alice: Patient, session: Json, terminal: Terminal
) -> None:
    shown = terminal.run('python3 -c \'x = b"x" * (900 << 20); print("sur" + "vived")\'', SLOW)
    assert "survived" not in shown
    wait_for(
        "the kill in the figures of use",
        lambda: (alice.get(session["id"])["usage"] or {}).get("oom_kills"),
        SLOW,
        pause=2,
    )
    assert alice.get(session["id"])["state"] == "RUNNING"


def test_the_end_for_want_of_memory_is_told_apart(
    alice: Patient, session: Json, terminal: Terminal
) -> None:
    # Pages of /dev/shm outlive the killed processes, so that none of the job's can continue.
    fill = "for i in 1 2 3 4 5 6 7 8; do setsid nohup head -c 300M /dev/zero >/dev/shm/$i & done"
    terminal.type(fill + Terminal.ENTER)
    end = alice.wait_state(session["id"], *OVER)["end"]
    assert end["cause"] == "out_of_memory"
    assert "more memory than the 600 MB" in end["text"]


def test_another_end_is_not_taken_for_it(alice: Patient) -> None:
    other = alice.running(resources={"cpus": 1, "memory": "300m"})
    alice.stop(other["id"])
    end = alice.wait_state(other["id"], *OVER)["end"]
    assert end["cause"] == "cancelled"
    assert end["text"] == "Ended by alice."


def test_jobs_are_limited_after_a_restart_of_slurmd(cluster: Cluster) -> None:
    # Slurm puts itself one group deeper at each start in a namespace.
    for _ in range(2):
        cluster.run("n1", "supervisorctl", "-c", "/etc/supervisor/node.conf", "restart", "slurmd")
    script = (
        "group=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)\n"
        'while [ "$group" != /sys/fs/cgroup ]; do cat "$group/memory.max"; group=${group%/*}; done'
    )
    assert str(100 * MB) in batch(cluster, script).split()
