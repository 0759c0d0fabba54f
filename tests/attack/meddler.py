"""Runs as another user on the login node, and meddles with a folder in which both may write.

Read by `python3 -`, with JSON on the command line. Works until the file `stop` appears or the
time is over, and prints counts as JSON. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import random
import struct
import sys
import time

PART = ".slipway-"
SPARE = ".spare"
EVERYTHING = 0o6777
WATCHING = 0.7
"""How often nothing is done while nothing is unfinished: much must succeed for the other, too."""
BAITS = 0.3
"""How often it is to have a file that the other may replace."""
MOST_ACTS = 3
"""With one unfinished file: afterwards it is his."""
MOST_NAMES = 30
"""In a folder, after which names are deleted."""
ACL = "system.posix_acl_access"
EXCHANGE = 2
_libc = ctypes.CDLL(None, use_errno=True)


def exchange(folder: str, name: str, other: str) -> None:
    """Exchange two names of a folder at once; raises OSError."""
    first, second = (os.fsencode(os.path.join(folder, each)) for each in (name, other))
    if _libc.renameat2(-100, first, -100, second, EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")


def open_list(user: int) -> bytes:
    """An access control list that permits everything to everybody, and to one user by name."""
    rows = ((1, 7, -1), (2, 7, user), (4, 7, -1), (0x10, 7, -1), (0x20, 7, -1))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *row) for row in rows)


class Bait:
    """A file with every permission, which the other user is going to replace."""

    def __init__(self, folder: str, name: str, *, kept: bool) -> None:
        self.path = os.path.join(folder, name)
        self._spare = os.path.join(folder, ".bait")
        self._kept = kept

    def is_right(self) -> bool:
        try:
            status = os.lstat(self.path)
        except OSError:
            return False
        return (status.st_uid, status.st_mode) == (os.getuid(), 0o100000 | EVERYTHING)

    def lay(self) -> int:
        """Put it there; returns its descriptor."""
        with contextlib.suppress(OSError):
            os.unlink(self._spare)
        file = os.open(self._spare, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(file, b"bait " * 1000)
        with contextlib.suppress(OSError):
            os.setxattr(file, ACL, open_list(os.getuid()))
            os.setxattr(file, "user.bait", b"bait")
        os.fchmod(file, EVERYTHING)
        os.rename(self._spare, self.path)
        return file

    def keep(self) -> None:
        """Lay it again if it was replaced."""
        if self._kept and not self.is_right():
            with contextlib.suppress(OSError):
                os.close(self.lay())


class Trick:
    """Puts something else in the place of each unfinished file."""

    def __init__(self, order: dict[str, str]) -> None:
        self._folder = order["folder"]
        self._kind, self._target = order["kind"], order.get("target", "")
        self._block, self._ending = order.get("block", ""), order.get("ending", "")
        self._size = int(order.get("size", 0))
        self.played: set[str] = set()

    def prepare(self) -> None:
        """Have a link at hand, so that it takes one rename only."""
        if self._kind == "link":
            spare = os.path.join(self._folder, SPARE)
            with contextlib.suppress(FileExistsError):
                os.symlink(self._target, spare)

    def play(self, name: str) -> None:
        """Play it with an unfinished file; raises OSError."""
        part = os.path.join(self._folder, name)
        status = os.lstat(part)
        if not name.endswith(self._ending) or status.st_uid == os.getuid():
            return
        if status.st_size < self._size:  # it is not complete yet
            return
        self.played.add(name)
        if self._kind == "link":
            os.rename(os.path.join(self._folder, SPARE), part)
        elif self._kind == "rename":
            os.rename(os.path.join(self._folder, self._target), part)
        elif self._kind == "exchange":
            exchange(self._folder, name, self._target)
        if self._block:
            with contextlib.suppress(OSError):
                os.mkdir(os.path.join(self._folder, self._block))


def meddle(order: dict[str, str], until: float, stop: str) -> dict[str, int]:
    """Watch a folder in a tight loop, and play a trick with every unfinished file."""
    folder = order["folder"]
    trick = Trick(order)
    bait = Bait(folder, order.get("bait", ""), kept=bool(order.get("bait")))
    rounds = 0
    while time.monotonic() < until and not (rounds % 64 == 0 and os.path.exists(stop)):
        rounds += 1
        trick.prepare()
        names = [name for name in os.listdir(folder) if name.startswith(PART)]
        parts = set(names) - trick.played
        for name in parts:
            with contextlib.suppress(OSError):
                trick.play(name)
        if not parts:
            bait.keep()
    return {"rounds": rounds, "played": len(trick.played)}


def snatch(order: dict[str, str], until: float, stop: str) -> dict[str, int]:
    """Exchange a name as soon as there is something, whenever it was put away before."""
    folder, name, target = order["folder"], order["name"], order["target"]
    first, second = (os.fsencode(os.path.join(folder, each)) for each in (name, target))
    rounds = count = 0
    while time.monotonic() < until and not (rounds % 256 == 0 and os.path.exists(stop)):
        rounds += 1
        for _ in range(50):  # without anything else between, since there is little time
            if _libc.renameat2(-100, first, -100, second, EXCHANGE) == 0:
                count += 1
                while os.path.lexists(first) and not os.path.exists(stop):
                    time.sleep(0.001)
    return {"rounds": rounds, "played": count}


def hold(order: dict[str, str], until: float, stop: str) -> dict[str, bool]:
    """Keep a file with every permission open and mapped while the other user replaces it."""
    bait = Bait(order["folder"], order["bait"], kept=True)
    file = bait.lay()
    mapped = mmap.mmap(file, 5000)
    while time.monotonic() < until and not os.path.exists(stop):
        time.sleep(0.01)
    mapped[:4] = b"evil"
    mapped.flush()
    os.pwrite(file, b"evil", 100)
    try:
        new = os.open(bait.path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return {"written": False}
    os.pwrite(new, b"evil", 0)
    return {"written": True}


class Anything:
    """All that an owner of a folder may do in it, at random."""

    def __init__(self, order: dict[str, list[str]], chance: random.Random) -> None:
        self._folders, self._targets = order["folders"], order["targets"]
        self._names, self._chance = order["names"], chance
        self.done: dict[str, int] = {}
        self._known: dict[str, int] = {}
        """How often something was done with what is unfinished."""
        self._acts = [
            getattr(self, name) for name in sorted(dir(Anything)) if name.startswith("do_")
        ]
        self._quick = [self.do_link] * 3 + [self.do_exchange, self.do_hard_link_in_place]

    def step(self) -> None:
        """Do one thing, with an unfinished file if there is one."""
        names = {folder: os.listdir(folder) for folder in self._folders if self._opens(folder)}
        parts = [
            (folder, name)
            for folder, each in names.items()
            for name in each
            if name.startswith(PART) and self._known.get(name, 0) < MOST_ACTS
        ]
        if not names:
            return
        folder = self._chance.choice(list(names))
        name = self._chance.choice(names[folder] or self._names)
        if parts and self._chance.random() < 0.9:
            folder, name = self._chance.choice(parts)
            self._known[name] = self._known.get(name, 0) + 1
            self._count("unfinished")
        elif self._chance.random() < WATCHING:
            return
        elif self._chance.random() < BAITS:
            with contextlib.suppress(OSError):
                self.do_file(folder, self._chance.choice(self._names), "")
            return
        quick = name.startswith(PART) and self._chance.random() < 0.5
        act = self._chance.choice(self._quick if quick else self._acts)
        if len(names[folder]) > MOST_NAMES:
            act = self.do_unlink
        with contextlib.suppress(OSError, IndexError):  # there is nothing to choose from
            act(folder, name, self._other(names[folder]))
            self._count(act.__name__[3:])

    def _count(self, what: str) -> None:
        self.done[what] = self.done.get(what, 0) + 1

    def _opens(self, folder: str) -> bool:
        return os.access(folder, os.R_OK | os.W_OK | os.X_OK)

    def _other(self, present: list[str]) -> str:
        return self._chance.choice([*present, *self._names, SPARE + str(self._chance.randrange(9))])

    def _in(self, folder: str, name: str) -> str:
        return os.path.join(folder, name)

    def do_link(self, folder: str, name: str, other: str) -> None:
        spare = self._in(folder, f"{SPARE}-{self._chance.randrange(1 << 30)}")
        os.symlink(self._chance.choice(self._targets), spare)
        try:
            os.rename(spare, self._in(folder, name))
        except OSError:
            os.unlink(spare)
            raise

    def do_link_at_once(self, folder: str, name: str, other: str) -> None:
        os.unlink(self._in(folder, name))
        os.symlink(self._chance.choice(self._targets), self._in(folder, name))

    def do_hard_link(self, folder: str, name: str, other: str) -> None:
        os.link(self._in(folder, other), self._in(folder, f"{name[:60]}-2"), follow_symlinks=False)

    def do_hard_link_in_place(self, folder: str, name: str, other: str) -> None:
        spare = self._in(folder, f"{SPARE}-{self._chance.randrange(1 << 30)}")
        os.link(self._in(folder, other), spare, follow_symlinks=False)
        os.rename(spare, self._in(folder, name))

    def do_rename(self, folder: str, name: str, other: str) -> None:
        os.rename(self._in(folder, name), self._in(folder, other))

    def do_rename_back(self, folder: str, name: str, other: str) -> None:
        os.rename(self._in(folder, other), self._in(folder, name))

    def do_exchange(self, folder: str, name: str, other: str) -> None:
        exchange(folder, name, other)

    def do_exchange_with_a_folder(self, folder: str, name: str, other: str) -> None:
        spare = f"{SPARE}-{self._chance.randrange(1 << 30)}"
        os.mkdir(self._in(folder, spare), 0o777)
        os.chmod(self._in(folder, spare), self._chance.choice((0o077, 0o2777, 0o1777, 0o700)))
        exchange(folder, name, spare)

    def do_fifo(self, folder: str, name: str, other: str) -> None:
        os.unlink(self._in(folder, name))
        os.mkfifo(self._in(folder, name), 0o777)

    def do_file(self, folder: str, name: str, other: str) -> None:
        spare = self._in(folder, f"{SPARE}-{self._chance.randrange(1 << 30)}")
        file = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with contextlib.suppress(OSError):
            os.write(file, b"his" * self._chance.randrange(999))
            os.setxattr(file, ACL, open_list(os.getuid()))
            os.setxattr(file, "user.his", b"his")
        os.fchmod(file, self._chance.choice((EVERYTHING, 0o777, 0o4755, 0o2070, 0o000)))
        os.close(file)
        os.rename(spare, self._in(folder, name))

    def do_mode(self, folder: str, name: str, other: str) -> None:
        if not os.path.islink(self._in(folder, name)):
            os.chmod(
                self._in(folder, name), self._chance.choice((EVERYTHING, 0o700, 0o3777, 0o555))
            )

    def do_owner(self, folder: str, name: str, other: str) -> None:
        group = self._chance.choice(os.getgroups())
        os.chown(self._in(folder, name), -1, group, follow_symlinks=False)

    def do_unlink(self, folder: str, name: str, other: str) -> None:
        os.unlink(self._in(folder, name))

    def do_folder(self, folder: str, name: str, other: str) -> None:
        os.mkdir(self._in(folder, self._chance.choice(self._names)))

    def do_no_folder(self, folder: str, name: str, other: str) -> None:
        os.rmdir(self._in(folder, name))

    def do_go_in(self, folder: str, name: str, other: str) -> None:
        """The same in a folder of the folder, which may be an unfinished copy."""
        below = self._in(folder, name)
        inside = self._chance.choice(os.listdir(below) or self._names)
        act = self._chance.choice((self.do_link, self.do_exchange, self.do_unlink, self.do_mode))
        act(below, inside, self._chance.choice(self._names))

    def do_move_in(self, folder: str, name: str, other: str) -> None:
        os.rename(self._in(folder, name), os.path.join(folder, other, name))

    def do_move_out(self, folder: str, name: str, other: str) -> None:
        below = self._in(folder, other)
        inside = self._chance.choice(os.listdir(below))
        os.rename(os.path.join(below, inside), self._in(folder, inside))


def do_anything(order: dict[str, object], until: float, stop: str) -> dict[str, int]:
    """Meddle at random until the end."""
    chance = random.Random(int(str(order["seed"])))
    anything = Anything(order, chance)  # type: ignore[arg-type]
    rounds = 0
    while time.monotonic() < until and not (rounds % 64 == 0 and os.path.exists(stop)):
        rounds += 1
        with contextlib.suppress(OSError):  # access was taken back
            anything.step()
    return {"rounds": rounds, **anything.done}


def main(text: str) -> None:
    """Do as the order says."""
    os.umask(0)
    order = json.loads(text)
    until = time.monotonic() + float(order.pop("seconds"))
    stop = order.pop("stop")
    call = {"trick": meddle, "snatch": snatch, "hold": hold, "anything": do_anything}[
        order.pop("act")
    ]
    print(json.dumps(call(order, until, stop)))  # type: ignore[operator]


if __name__ == "__main__":
    main(sys.argv[1])
