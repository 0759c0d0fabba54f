"""How many commands share one SSH connection; what SSH itself does is tested on a real cluster."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from portal.adapters import transport
from portal.adapters.transport import MOST_AT_ONCE, Completed, SshTransport
from portal.errors import Unavailable


class Crowded(SshTransport):
    """Commands that take a moment, and how many there were at the same time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(Mock(), Mock())
        self._seconds = seconds
        self._count = threading.Lock()
        self._now = 0
        self.most = 0

    def _run(self, *_command: object) -> Completed:
        with self._count:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(self._seconds)
        with self._count:
            self._now -= 1
        return Completed(0, b"", "")


def test_forty_commands_wait_for_each_other() -> None:
    crowded = Crowded(0.02)
    with ThreadPoolExecutor(40) as pool:
        done = list(pool.map(lambda _: crowded.run("alice", ["true"]), range(40)))
    assert [each.code for each in done] == [0] * 40
    assert crowded.most == MOST_AT_ONCE <= 10


def test_people_do_not_wait_for_each_other() -> None:
    crowded = Crowded(0.3)
    people = ["alice", "bob"] * MOST_AT_ONCE
    with ThreadPoolExecutor(len(people)) as pool:
        list(pool.map(lambda user: crowded.run(user, ["true"]), people))
    assert crowded.most == 2 * MOST_AT_ONCE


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(transport, "WAIT_SECONDS", 0.05)
    crowded = Crowded(0.5)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(crowded.run, "alice", ["sleep"])
        while not crowded.most:
            time.sleep(0.001)
        with pytest.raises(Unavailable, match="Try again"):
            crowded.run("alice", ["true"])
        assert first.result().code == 0
    assert crowded.run("alice", ["true"]).code == 0
