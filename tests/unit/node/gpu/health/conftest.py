"""A node with processes in jobs, FUSE connections and a Slurm that answers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from portal.node.gpu.health.fuse import Fuse
from portal.node.gpu.health.members import Member, members
from portal.node.gpu.watchdog.processes import Processes
from tests.unit.node.gpu.node import Proc


def mount(number: int, kind: bytes = b"fuse.x", name: bytes = b"/mnt") -> bytes:
    """A line of mountinfo, in which the kernel has escaped what users named."""
    return b"54 27 0:%d / %s rw,relatime - %s x rw,user_id=1001\n" % (number, name, kind)


class Machine:
    """The node's /proc and connections; `frees` are the processes that each connection holds."""

    def __init__(self, folder: Path) -> None:
        self.proc = Proc(folder / "proc")
        self.proc.add(1, "", 0, mounts=mount(30))
        self.connections = folder / "connections"
        self.connections.mkdir()
        self.uids: dict[int, int] = {}
        self.frees: dict[int, list[int]] = {}
        self.aborted: list[int] = []
        machine = self

        class Aborting(Fuse):
            """Whose owners are as the test says: only root can give a file to another."""

            def waiting(self) -> dict[int, int]:
                found = super().waiting()
                return {n: machine.uids[n] for n in found if machine.uids[n]}

            def abort(self, number: int) -> None:
                super().abort(number)
                machine.aborted.append(number)
                for pid in machine.frees.pop(number, []):
                    machine.proc.remove(pid)
                shutil.rmtree(machine.connections / str(number))

        self.subuid = folder / "subuid"
        self.fuse = Aborting(self.connections, self.proc.folder, self.subuid)

    def connect(self, number: int, uid: int, *frees: int, waiting: int = 1) -> None:
        """A connection of a user's, for which processes wait."""
        place = self.connections / str(number)
        place.mkdir()
        (place / "waiting").write_text(f"{waiting}\n")
        (place / "abort").touch()
        self.uids[number] = uid
        self.frees[number] = list(frees)

    def look(self) -> list[Member]:
        return list(members(Processes(self.proc.folder), self.proc.folder))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    # The folders here belong to whoever runs the tests, who may be root.
    monkeypatch.setattr("portal.node.gpu.health.fuse.ROOT", -1)
    return Machine(tmp_path)
