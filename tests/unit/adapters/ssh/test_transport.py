"""Turns over pooled SSH connections; SSH itself is tested on a real cluster."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from portal.adapters.ssh.command import CommandTimeout
from portal.adapters.ssh.transport import PORTAL_LIMITS, USER_LIMITS, Completed, SshTransport
from portal.config import LoginSettings
from portal.errors import Unavailable

GUNICORN_THREADS = 8


class Crowded(SshTransport):
    """Commands that take a moment, with a count of concurrent ones."""

    def __init__(self, seconds: float, error: Exception | None = None) -> None:
        super().__init__(LoginSettings.model_validate({}), Mock(), "slipway-operator")
        self._seconds = seconds
        self.error = error
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
        if self.error is not None:
            raise self.error
        return Completed(0, b"", "")


def test_commands_of_the_portals_own_account_queue() -> None:
    crowded = Crowded(0.02)
    with ThreadPoolExecutor(40) as pool:
        done = list(pool.map(lambda _: crowded.run("slipway", ["true"]), range(40)))
    assert [each.code for each in done] == [0] * 40
    assert crowded.most == PORTAL_LIMITS.at_once <= 10


def test_no_user_holds_all_threads() -> None:
    """H3 b: 24 parallel requests of one user, whose commands do not end."""
    crowded = Crowded(0.5)
    refused = []

    def ask(_number: int) -> None:
        try:
            crowded.run("bob", ["true"])
        except Unavailable as error:
            refused.append(error.text)

    with ThreadPoolExecutor(24) as pool:
        list(pool.map(ask, range(24)))
    assert crowded.most == USER_LIMITS.at_once
    assert USER_LIMITS.at_once + USER_LIMITS.waiting < GUNICORN_THREADS
    assert len(refused) == 24 - USER_LIMITS.at_once - USER_LIMITS.waiting
    assert "Try again in" in refused[0]


def test_users_do_not_wait_for_each_other() -> None:
    crowded = Crowded(0.3)
    people = ["alice", "bob"] * USER_LIMITS.at_once
    with ThreadPoolExecutor(len(people)) as pool:
        list(pool.map(lambda user: crowded.run(user, ["true"]), people))
    assert crowded.most == 2 * USER_LIMITS.at_once


def test_a_command_that_did_not_end_is_followed_by_a_pause() -> None:
    crowded = Crowded(0, CommandTimeout("it dripped"))
    with pytest.raises(CommandTimeout):
        crowded.run("bob", ["true"])
    with pytest.raises(Unavailable, match="Try again in 2 seconds"):
        crowded.run("bob", ["true"])
    crowded.error = None
    assert crowded.run("alice", ["true"]).code == 0
    # The portal's own accounts belong to the site: their failures pause nobody.
    crowded.error = CommandTimeout("Slurm thinks")
    for _ in range(2):
        with pytest.raises(CommandTimeout):
            crowded.run("slipway-operator", ["true"])
