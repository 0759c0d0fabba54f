"""Which process is named when the kernel's counter of killed ones rises."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.node.runner.memory import MemoryWatch


class Node:
    """A cgroup and a /proc whose processes come and go."""

    def __init__(self, root: Path) -> None:
        self.cgroup, self.proc = root / "cgroup", root / "proc"
        self.cgroup.mkdir()
        self.proc.mkdir()
        (self.cgroup / "memory.current").write_text("1\n")
        (self.cgroup / "memory.max").write_text(f"{600 * 2**20}\n")
        self.kills(0)
        self.told: list[str] = []
        self.watch = MemoryWatch(self.told.append, str(self.cgroup), str(self.proc))

    def kills(self, count: int) -> None:
        """The kernel's counter."""
        (self.cgroup / "memory.events").write_text(f"oom {count}\noom_kill {count}\n")

    def process(
        self, pid: int, name: str, pages: int, state: str = "S", command: str = "", start: int = 0
    ) -> None:
        """A process of this size."""
        folder = self.proc / str(pid)
        folder.mkdir(exist_ok=True)
        fields = [state, *["0"] * 18, str(start), "0", str(pages), "0"]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
        (folder / "cmdline").write_bytes(command.replace(" ", "\0").encode())

    def gone(self, pid: int) -> None:
        """The process is gone."""
        for file in (self.proc / str(pid)).iterdir():
            file.unlink()
        (self.proc / str(pid)).rmdir()


@pytest.fixture
def node(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Node:
    """A node with three processes, seen once."""
    found = Node(tmp_path)
    found.process(1, "runner", 5000)
    found.process(7, "python3", 90000, command="python3 /opt/slipway/jupyter/kernel.py -f x")
    found.process(8, "R (odd) name", 1000)
    found.watch.poll()
    return found


def test_the_largest_of_those_that_vanished_is_named(
    node: Node, capfd: pytest.CaptureFixture[str]
) -> None:
    node.gone(7)
    node.gone(8)
    node.kills(1)
    node.watch.poll()
    text = (
        "python3 (a notebook kernel) was stopped: it wanted more than the 0.59 GB of this session"
    )
    assert node.told == [text]
    assert text in capfd.readouterr().out
    report = node.watch.report()
    assert report["oom_program"] == "python3 (a notebook kernel)"
    assert isinstance(report["oom_age"], float)
    assert 0 <= report["oom_age"] < 5
    node.watch.poll()
    assert len(node.told) == 1


def test_an_ordinary_exit_is_no_kill(node: Node) -> None:
    node.gone(7)
    node.watch.poll()
    assert node.told == []
    assert node.watch.report() == {}


def test_a_zombie_was_killed(node: Node) -> None:
    node.process(8, "R (odd) name", 0, state="Z")
    node.kills(1)
    node.watch.poll()
    assert node.told[0].startswith("R (odd) name was stopped")


def test_the_counter_may_be_late(node: Node) -> None:
    node.gone(7)
    node.watch.poll()
    node.kills(1)
    node.watch.poll()
    assert node.told[0].startswith("python3 (a notebook kernel) was stopped")


def test_a_process_that_nobody_saw_is_not_named(node: Node) -> None:
    for _ in range(2):
        node.watch.poll()
    node.kills(1)
    node.watch.poll()
    assert node.told[0].startswith("A process was stopped")
    assert node.watch.report()["oom_program"] == ""


def test_a_pid_that_is_used_again_is_another_process(node: Node) -> None:
    node.process(7, "python3", 10, command="python3 x.py", start=5)
    node.kills(1)
    node.watch.poll()
    assert node.told[0].startswith("python3 (a notebook kernel) was stopped")


def test_a_program_started_by_exec_has_its_own_name(node: Node) -> None:
    node.process(8, "julia", 70000)
    node.watch.poll()
    node.gone(8)
    node.kills(1)
    node.watch.poll()
    assert node.told[0].startswith("julia was stopped")


def test_names_are_reported_as_the_portal_accepts_them(node: Node) -> None:
    node.process(9, "böse\x1b[1m", 95000)
    node.watch.poll()
    node.gone(9)
    node.kills(1)
    node.watch.poll()
    assert node.watch.report()["oom_program"] == "b?se?[1m"


def test_a_job_without_a_counter_is_quiet(tmp_path: Path) -> None:
    told: list[str] = []
    watch = MemoryWatch(told.append, str(tmp_path / "none"), "/proc")
    watch.poll()
    assert told == []
