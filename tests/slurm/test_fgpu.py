"""Shares of a GPU through the portal, on the stand-in GPU of node n1 (8 GiB, 2 fGPU, 4 shards)."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.slurm.conftest import MakeApi
from tests.support.apps import Terminal
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.ssh_access import SshClient, client_of, open_ssh

PROBE = Path(__file__).with_name("gpu_probe.py")
HALF: Json = {"cpus": 1, "memory": "300m", "fgpu": 0.5}
SLICE = 2048
"""0.5 fGPU in MiB."""
CONTEXT = 64
"""Memory in MiB that the stand-in charges to each process."""
OUT_OF_MEMORY = 2
DRIVER = "/opt/slipway-gpu/driver/libcuda.so.1"
SHIM = "/.singularity.d/libs/libcuda.so.1"


class Computer:
    """A session with a share of a GPU, and its owner's SSH access."""

    def __init__(self, api: Api, session: Json, folder: Path) -> None:
        self.api = api
        self.session = session
        self.client: SshClient = client_of(api, open_ssh(api, session["id"]), folder)
        self.client.copy(str(PROBE), f"{self.client.there}probe.py")

    def run(self, *command: str) -> str:
        """Run a command in the session."""
        done = self.client.ssh(*command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.decode()

    def probe(self, what: str, before: str = "") -> Json:
        """The first line printed by a probe."""
        found: Json = json.loads(self.run(f"{before} python3 probe.py {what}").splitlines()[0])
        return found

    @contextmanager
    def holding(self, what: str = "hold") -> Iterator[Held]:
        """A probe that keeps the memory that it has allocated."""
        argv = self.client.argv(f"python3 probe.py {what}")
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                yield Held(process)
            finally:
                process.kill()

    def usage(self) -> Json:
        """The session's usage in the API."""
        return self.api.get(self.session["id"])["usage"] or {}


class Held:
    """GPU memory held by a process in a session."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdout is not None
        self.first: Json = json.loads(process.stdout.readline())

    def release(self) -> Json:
        """Release the memory; the process's last output."""
        out, _ = self.process.communicate(b"", timeout=20)
        found: Json = json.loads(out)
        return found


def node_of(cluster: Cluster, session: Json, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a program in the session's job, outside its container."""
    words = ["srun", "--overlap", f"--jobid={session['job_id']}", *argv]
    return cluster.attempt("exec", "--user", session["owner"], "login", "--", *words)


def busy(cluster: Cluster) -> dict[int, int]:
    """Nanoseconds that each process has kept the GPU busy, by PID; key 0 is the GPU's clock."""
    shown = json.loads(cluster.run("n1", "standin", "show"))
    used = {process["pid"]: process["busy_ns"][0] for process in shown["processes"]}
    return {0: shown["now_ns"]} | used


def shares_of_three_seconds(cluster: Cluster) -> list[float]:
    """Percent of the next three seconds in which each process keeps the GPU busy."""
    before = busy(cluster)
    time.sleep(3)
    after = busy(cluster)
    clock = after.pop(0) - before.pop(0)
    return [100 * (after[pid] - before[pid]) / clock for pid in before]


# The queue


def test_two_fit_and_the_third_waits_for_its_turn(alice: Api) -> None:
    whole = {"cpus": 1, "memory": "300m", "fgpu": 1}
    sessions = [alice.launch(resources=whole) for _ in range(3)]
    for session in sessions[:2]:
        running = alice.wait_state(session["id"], "RUNNING")
        assert running["node"] == "n1"
        assert running["resources"]["fgpu"] == 1
    third = sessions[2]["id"]

    def reason() -> str:
        waiting = alice.get(third)
        assert waiting["state"] == "PENDING"
        return str((waiting["reason"] or {}).get("text"))

    wait_for("the reason", lambda: "It waits for a GPU share: 2 of 2 fGPU" in reason())
    alice.stop(sessions[0]["id"])
    alice.wait_state(third, "RUNNING")


def test_without_fgpu_there_is_no_gpu(alice: Api, cluster: Cluster, tmp_path: Path) -> None:
    cluster.run("ctl", "scontrol", "update", "NodeName=n2", "State=drain", "Reason=test")
    try:
        session = alice.running(resources={"cpus": 1, "memory": "300m"})
    finally:
        cluster.run("ctl", "scontrol", "update", "NodeName=n2", "State=resume")
    assert session["node"] == "n1"
    plain = Computer(alice, session, tmp_path)
    assert plain.probe("look") == {}
    assert "nvidia" not in plain.run("ls /dev")
    refused = node_of(cluster, session | {"owner": "alice"}, "cat", "/dev/nvidia0")
    assert "Operation not permitted" in refused.stderr


# One session each of alice and bob, side by side on the GPU


@pytest.fixture(scope="module")
def computer(researcher: Api, tmp_path_factory: pytest.TempPathFactory) -> Computer:
    """Alice's session with half an fGPU."""
    session = researcher.launch(resources=HALF)
    running = researcher.wait_state(session["id"], "RUNNING")
    return Computer(researcher, running, tmp_path_factory.mktemp("alice"))


@pytest.fixture(scope="module")
def neighbour(make_api: MakeApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Computer]:
    """Bob's session."""
    api = make_api("bob")
    try:
        session = api.running(resources=HALF)
        yield Computer(api, session, tmp_path_factory.mktemp("bob"))
    finally:
        api.clean()


def test_only_the_slice_is_visible(computer: Computer) -> None:
    assert f"/ {SLICE}MiB" in computer.run("nvidia-smi")
    terminal = Terminal(computer.api.open(computer.session["id"], "terminal"))
    assert f"/ {SLICE}MiB" in terminal.run("nvidia-smi")
    terminal.close()
    seen = computer.probe("look")
    assert seen["total"] == SLICE
    assert SHIM in seen["paths"]


@pytest.mark.parametrize("before", ["env -u LD_LIBRARY_PATH", "env -i PATH=/opt/python/bin"])
def test_other_environments_find_the_shim_or_no_gpu(computer: Computer, before: str) -> None:
    assert computer.probe("look", before) == {}
    seen = computer.probe("look", f"{before} LD_LIBRARY_PATH=/.singularity.d/libs")
    assert seen["total"] == SLICE


def test_both_get_all_of_their_slices_and_no_more(computer: Computer, neighbour: Computer) -> None:
    with neighbour.holding() as bob, computer.holding() as alice:
        for held in (bob, alice):
            assert held.first["codes"] == [OUT_OF_MEMORY]
            assert SLICE - 128 <= held.first["taken"] <= SLICE
        # Another process of the same session has the same slice, which is used up.
        assert computer.probe("fill")["taken"] == 0
        assert alice.release()["free"] >= alice.first["taken"]
        assert bob.release()["free"] >= bob.first["taken"]


def test_a_killed_process_gives_its_memory_back(computer: Computer) -> None:
    with computer.holding() as held:
        computer.run("pkill -KILL -f 'probe.py hol[d]'")
        assert computer.probe("fill")["taken"] == held.first["taken"]


def test_computing_stays_within_the_share_and_is_shown(
    computer: Computer, neighbour: Computer, cluster: Cluster
) -> None:
    def used() -> Json | None:
        usage = computer.usage()
        return usage if usage.get("gpu_memory") and usage.get("gpu_percent") else None

    def settled() -> list[float] | None:
        shares = shares_of_three_seconds(cluster)
        print(shares)
        assert len(shares) == 2
        # Never more; a busy machine may let a process launch less.
        return shares if all(5 < share < 32 for share in shares) else None

    with computer.holding("compute"), neighbour.holding("compute"):
        # Quota that nobody has used so far may be used up at once; and where the machine is busy,
        # the watchdog first charges too little, as it sees that both use less than their shares.
        wait_for("both shares", settled, 30)
        usage = wait_for("the use of the GPU within a heartbeat", used, 25)
    assert usage["gpu_memory"] >= CONTEXT << 20
    assert usage["gpu_percent"] < 40
    assert usage["gpu_kills"] == 0


def test_bypassing_the_shim_ends_within_seconds_and_harms_nobody(
    computer: Computer, neighbour: Computer
) -> None:
    with neighbour.holding() as bob:
        with computer.holding(f"take {DRIVER} 3072") as thief:
            assert thief.first == {"code": 0}
            with suppress(subprocess.TimeoutExpired):
                thief.process.wait(20)
            assert thief.process.poll() not in (None, 0)
        wait_for("the kill in the figures of use", lambda: computer.usage().get("gpu_kills"), 25)
        assert not neighbour.usage().get("gpu_kills")
        assert bob.release()["free"] >= bob.first["taken"]
    assert computer.probe("look")["total"] == SLICE
