"""Two accounts in the same folders: one works by all doors, the other does all that he may there.

`SLIPWAY_PROJECT=… PORT=… python -m tests.attack.fuzz_shared_folder --minutes 30 --seed 1` against a
running cluster. Roles are exchanged after each phase. Exits with 1 and the differences if anything
outside of the folders has changed.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException

import requests

from portal.node.file_server.access import posix_acl
from tests.attack.doors import (
    EVERY_DOOR,
    PATIENCE,
    Answer,
    Client,
    Direct,
    DirectServer,
    Doors,
    Proxy,
)
from tests.attack.shared_place import KINDS, SECRET, Person, Shared, differences, shared_place
from tests.support.client import Json
from tests.support.cluster import Cluster

NAMES = ("report.txt", "data.bin", "tree", "sub", "notes")
CONTENTS = ("save", "put", "dav_put", "tus_whole", "tus_pieces")
PHASE = 20.0
"""Seconds."""
LOOK = 1.0
"""Seconds between looks at what must not change."""
SLOW = 10.0
PROXY_THREADS, DIRECT_THREADS = 1, 2
"""Threads that write through HAProxy, and straight to a file server."""


@dataclass
class Tally:
    """What was done, and what has changed."""

    doors: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    meddled: Counter[str] = field(default_factory=Counter)
    slow: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    lost: dict[str, list[str]] = field(default_factory=dict)
    """What has changed, by file and property."""
    races: int = 0
    phases: int = 0
    seconds: float = 0.0

    def note(self, way: str, door: str, answer: Answer | None, seconds: float) -> None:
        """Count a request."""
        self.doors[door] += 1
        self.answers[f"{way} {answer.status // 100}xx" if answer else f"{way} none"] += 1
        if seconds > SLOW:
            self.slow[door] += 1
        if answer and answer.status >= 400:
            self.refusals[str(answer.json.get("code", answer.status))] += 1
        if answer and answer.status == 500:
            self.errors[f"{door}: {answer.json.get('detail', '')}"] += 1

    def lose(self, changed: list[str]) -> None:
        """Count a look at which something had changed."""
        self.races += 1
        for line in changed:
            self.lost.setdefault(line.partition(" was ")[0], []).append(line)

    def print(self, seed: int) -> None:
        """Print all of it."""
        operations, acts = sum(self.doors.values()), self.meddled["rounds"]
        rate = operations / max(self.seconds, 1)
        print(f"seed {seed}, {self.seconds / 60:.1f} minutes, {self.phases} phases")
        print(f"{operations:,} operations, {rate:.0f} a second; {acts:,} tries of the other")
        for title, counts in (
            ("doors", self.doors),
            ("answers", self.answers),
            ("the other", self.meddled),
            ("over 10 s", self.slow),
            ("refused", self.refusals),
            ("status 500", self.errors),
        ):
            print(f"{title}: " + ", ".join(f"{name} {n:,}" for name, n in counts.most_common()))
        print(f"looks at which something outside had changed: {self.races}")
        for lines in self.lost.values():
            print(f"  {len(lines)} times, first: {lines[0][:400]}")


class Writer:
    """Works in shared folders by all doors, at random."""

    def __init__(
        self, shared: Shared, who: Person, way: str, client: Client, seed: int, inner: bool
    ) -> None:
        self._inner = inner  # at her home, every link to what is hers stays inside
        self._shared, self._who, self._way, self._client = shared, who, way, client
        self._doors, self._chance = Doors(client), random.Random(seed)

    def run(self, until: float, tally: Tally) -> None:
        """Work until a time."""
        while time.monotonic() < until:
            name, call = self._choose()
            begun, answer = time.monotonic(), None
            try:
                answer = call()
            except (requests.RequestException, HTTPException, OSError):
                time.sleep(0.05)
            tally.note(self._way, name, answer, time.monotonic() - begun)
        self._wait_for_operations()
        if isinstance(self._client, Direct):
            self._client.close()

    def _wait_for_operations(self) -> None:
        """Wait for those whose answers were lost, too.

        A link that is moved after the phase would be there in the next one, whose writer follows it
        if it is his own.
        """
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(requests.RequestException, HTTPException, OSError):
                known = self._client.control("GET", "operations").json.get("operations", ())
                if not any(each["state"] in ("waiting", "running") for each in known):
                    return
            time.sleep(0.1)

    def _choose(self) -> tuple[str, Callable[[], Answer]]:
        chance, kind = self._chance, self._chance.choice(KINDS)
        folder = self._shared.location(kind, self._who)
        if self._inner and folder.startswith("storage/") and chance.random() < 0.3:
            folder = f"home/{folder}"
        name = chance.choice((*NAMES, f"new-{chance.randrange(1000)}"))
        if chance.random() < 0.2:
            folder = f"{folder}/{chance.choice(NAMES)}"
        choice = chance.random()
        if choice < 0.5:
            door, text = (
                chance.choice(list(EVERY_DOOR)),
                chance.randbytes(1 << chance.randrange(17)),
            )
            if door == "put_large" and chance.random() < 0.9:
                door = "save"
            return door, lambda: EVERY_DOOR[door](self._doors, folder, name, text)
        if choice < 0.85:
            return chance.choice(list(self._doors.others(folder, name).items()))
        return chance.choice(list(self._rare(kind, folder, name).items()))

    def _rare(self, kind: str, folder: str, name: str) -> dict[str, Callable[[], Answer]]:
        doors, conflict = self._doors, self._chance.choice(("refuse", "rename", "replace", "skip"))
        return {
            "copy_out": lambda: doors.operate(
                "copy", f"{folder}/{name}", "home/incoming", "rename"
            ),
            "move_out": lambda: doors.operate(
                "move", f"{folder}/{name}", "storage/across", "rename"
            ),
            "copy_inside": lambda: doors.operate("copy", f"{folder}/{name}", folder, conflict),
            "copy_tree": lambda: doors.operate("copy", "home/sources/tree", folder, conflict),
            "cancelled": lambda: self._cancelled(folder),
            "given_up": lambda: self._given_up(folder, name),
            "share": lambda: self._share(kind),
        }

    def _cancelled(self, folder: str) -> Answer:
        answer = self._doors.begin_operation("copy", "home/sources/tree", folder)
        self._client.control("DELETE", f"operations/{answer.json.get('id', 'none')}")
        return self._doors.ended(answer)

    def _given_up(self, folder: str, name: str) -> Answer:
        answer = self._doors.begin(folder, name, 5000)
        if answer.status < 300:
            self._doors.append(answer, 0, b"half" * 500)
        return self._doors.give_up(answer)

    def _share(self, kind: str) -> Answer:
        """Take access to an own folder back and give it again."""
        owner = {"his": self._shared.he, "hers": self._shared.she}.get(kind)
        if owner is not self._who:
            return self._client.control("GET", "uploads")
        other = self._shared.she if owner is self._shared.he else self._shared.he
        self._client.share(kind, other.name, None)
        return self._client.share(kind, other.name, "write")


class Fuzz:
    """Phases, in which one writes and the other meddles."""

    def __init__(self, shared: Shared, seed: int, inner: bool) -> None:
        self._shared, self._chance, self._inner = shared, random.Random(seed), inner
        self._servers = {
            person.name: DirectServer(shared.cluster, person.name)
            for person in (shared.she, shared.he)
        }
        self.tally = Tally()

    def run(self, seconds: float) -> None:
        """Run phases until the time is over."""
        begun = time.monotonic()
        roles = [(self._shared.she, self._shared.he), (self._shared.he, self._shared.she)]
        while (left := seconds - (time.monotonic() - begun)) > 1:
            self._phase(*roles[self.tally.phases % 2], min(PHASE, left))
            self.tally.phases += 1
        self.tally.seconds = time.monotonic() - begun

    def _phase(self, writer: Person, meddler: Person, seconds: float) -> None:
        before = self._outside()
        until = time.monotonic() + seconds
        threads = [
            threading.Thread(target=each.run, args=(until, self.tally))
            for each in self._writers(writer)
        ]
        folders = [self._shared.path(kind) for kind in KINDS]
        order = {
            "folders": folders,
            "names": NAMES,
            "targets": self._targets(writer),
            "seed": self._chance.randrange(1 << 30),
        }
        with self._shared.meddling("anything", order, seconds + 5, meddler) as report:
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                self._check(before, writer)
                time.sleep(LOOK)
        self.tally.meddled.update(report)
        self._check(before, writer)
        if not self._inner:  # else he may have brought what is his there himself
            self._check_contents(folders)
        self._shared.clear()

    def _writers(self, who: Person) -> list[Writer]:
        ways: list[tuple[str, Client]] = [("proxy", Proxy(who.api())) for _ in range(PROXY_THREADS)]
        ways += [("direct", Direct(self._servers[who.name])) for _ in range(DIRECT_THREADS)]
        seeds = (self._chance.randrange(1 << 30) for _ in ways)
        return [
            Writer(self._shared, who, way, client, seed, self._inner)
            for (way, client), seed in zip(ways, seeds, strict=True)
        ]

    def _targets(self, person: Person) -> list[str]:
        """Where links of the other lead."""
        below = (".ssh", ".bashrc", "canaries/secret", "canaries/folder", "storage/other/file", "")
        absolute = [f"{person.home}/{name}".rstrip("/") for name in below]
        system = ["..", ".", "report.txt", "/etc/passwd", "/proc/self/environ", "/"]
        inner = ["../other", "../other/file", "../../canaries/secret", "../../.bashrc"]
        if not self._inner:
            absolute = [path for path in absolute if "/storage" not in path]
            system.remove("..")
            inner = []
        return [*absolute, *[person.home] * 4, *inner, *system]

    def _outside(self) -> dict[str, Json]:
        about = self._shared.outside(self._shared.she, self._shared.he)
        for person in (self._shared.she, self._shared.he):
            for top in (person.home, f"{person.home}/storage"):
                # Who shares lets others pass, and not while nothing is shared.
                about[top].pop("changed")
                about[top]["mode"] = f"{int(about[top]['mode'], 8) & ~0o010:o}"
                about[top]["attributes"].pop(posix_acl.ACCESS, None)
        return about

    def _check(self, before: dict[str, Json], writer: Person) -> None:
        """By his own links he changes what is his own, which counts as nothing."""
        changed = differences(before, self._outside())
        if lost := [each for each in changed if each.startswith(f"{writer.home}")]:
            self.tally.lose(lost)
        if changed:
            self._shared.restore(before)
            before.clear()
            before.update(self._outside())

    def _check_contents(self, folders: list[str]) -> None:
        """Nothing that is outside may have been copied into a folder."""
        if holding := self._shared.look(folders=folders, word=SECRET)["holding"]:
            self.tally.lose([f"{path} holds what was outside" for path in holding])


def fuzz(cluster: Cluster, seconds: float, seed: int, inner: bool = True) -> Tally:
    """Fuzz with two accounts that are made for it; returns what was done and lost.

    `inner`: with links from a folder of hers to what is beside it in the same storage area.
    """
    with shared_place(cluster) as shared:
        run = Fuzz(shared, seed, inner)
        run.run(seconds)
        return run.tally


def main() -> int:
    """Run it from the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument(
        "--no-inner-links",
        action="store_true",
        help="leave out links that stay in the writer's own storage area",
    )
    options = parser.parse_args()
    inner = not options.no_inner_links
    tally = fuzz(Cluster.from_environment(), options.minutes * 60, options.seed, inner)
    tally.print(options.seed)
    return 1 if tally.races else 0


if __name__ == "__main__":
    sys.exit(main())
