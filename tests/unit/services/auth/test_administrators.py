"""Administrators by name and by group: granted by an answer only, and lost within a minute."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from portal.core.auth.accounts import Identity
from portal.services.auth.administrators import Administrators
from tests.support.clock import FakeClock
from tests.support.fakes import FakeAccounts

STAFF = Identity(1001, frozenset({"alice", "hpc-staff"}))
OTHER = Identity(1001, frozenset({"alice"}))


class Rig:
    """Administrators of the group hpc-staff, and "admin" by name."""

    def __init__(self, groups: tuple[str, ...] = ("hpc-staff", "hpc-heads")) -> None:
        self.accounts, self.clock = FakeAccounts(), FakeClock()
        self.found = Administrators(["admin"], groups, self.accounts, self.clock)

    def after(self, user: str = "alice", **time: float) -> bool:
        """Whether the user is an administrator when some time has passed."""
        self.clock.advance(**time)
        return self.found.includes(user)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_members_of_any_of_the_groups_and_named_users(rig: Rig) -> None:
    rig.accounts.identities |= {"alice": STAFF, "bob": Identity(2, frozenset({"hpc-heads"}))}
    assert [rig.found.includes(user) for user in ("alice", "bob", "admin")] == [True] * 3
    assert not rig.found.includes("root")
    assert not rig.found.includes("nobody-at-all")


def test_without_groups_nobody_is_asked_for() -> None:
    rig = Rig(groups=())
    rig.accounts.identities["alice"] = STAFF
    assert rig.found.includes("admin")
    assert not rig.found.includes("alice")
    assert rig.accounts.asked == []


def test_the_login_node_is_asked_once_a_minute(rig: Rig) -> None:
    rig.accounts.identities["alice"] = STAFF
    assert all(rig.after(seconds=1) for _ in range(59))
    assert len(rig.accounts.asked) == 1
    assert rig.after(seconds=2)
    assert len(rig.accounts.asked) == 2


def test_a_removed_member_is_none_a_minute_later(rig: Rig) -> None:
    rig.accounts.identities["alice"] = STAFF
    assert rig.found.includes("alice")
    rig.accounts.identities["alice"] = OTHER
    assert rig.after(seconds=59)
    assert not rig.after(seconds=1)
    rig.accounts.identities["alice"] = STAFF
    rig.clock.advance(seconds=1)
    assert not rig.found.includes("alice")
    assert rig.found.includes("alice", since=rig.clock())
    rig.accounts.removed.add("alice")
    assert not rig.after(seconds=60)


def test_a_new_member_is_one_after_the_next_log_in_or_ten_minutes(rig: Rig) -> None:
    rig.accounts.identities["alice"] = OTHER
    assert not rig.found.includes("alice")
    rig.accounts.identities["alice"] = STAFF
    assert not rig.after(minutes=9)
    assert rig.after(minutes=1)
    rig.accounts.identities["alice"] = OTHER
    assert not rig.after(minutes=1)
    rig.accounts.identities["alice"] = STAFF
    rig.clock.advance(seconds=1)
    assert not rig.found.includes("alice")
    assert rig.found.includes("alice", since=rig.clock())


def test_a_log_in_counts_in_every_process(rig: Rig) -> None:
    """Requests of one login come to all processes; each has asked before at another time."""
    rig.accounts.identities["alice"] = OTHER
    processes = [Administrators([], ["hpc-staff"], rig.accounts, rig.clock) for _ in range(3)]
    for each in processes:
        assert not each.includes("alice")
        rig.clock.advance(seconds=1)
    rig.accounts.identities["alice"] = STAFF
    logged_in = rig.clock()
    rig.accounts.asked.clear()
    for _ in range(5):
        assert [each.includes("alice", logged_in) for each in processes] == [True] * 3
    rig.accounts.identities["alice"] = OTHER
    rig.clock.advance(minutes=1)
    for _ in range(5):  # the log-in has had its answer
        assert [each.includes("alice", logged_in) for each in processes] == [False] * 3
    assert len(rig.accounts.asked) == 6


def test_an_outage_keeps_the_last_answer_for_five_minutes(rig: Rig) -> None:
    rig.accounts.identities["alice"] = STAFF
    assert rig.found.includes("alice")
    rig.accounts.silent = True
    assert all(rig.after(minutes=1) for _ in range(5))
    assert not rig.after(seconds=1)
    rig.accounts.silent = False
    assert rig.after(minutes=1)


def test_an_outage_grants_nothing(rig: Rig) -> None:
    rig.accounts.silent = True
    rig.accounts.identities["alice"] = STAFF
    assert not rig.found.includes("alice")
    assert not any(rig.after(seconds=20) for _ in range(20))
    assert rig.found.includes("admin")
    rig.accounts.silent = False
    assert rig.after(minutes=1)


def test_after_a_question_without_an_answer_others_do_not_wait_for_theirs(rig: Rig) -> None:
    rig.accounts.silent = True
    for number in range(50):
        assert not rig.found.includes(f"user{number}")
    assert rig.accounts.asked == ["user0"]


def test_parallel_requests_of_somebody_unknown_get_one_answer(rig: Rig) -> None:
    answer, calls = threading.Event(), threading.Barrier(2)

    class Slow(FakeAccounts):
        def identity(self, user: str) -> Identity | None:
            self.asked.append(user)
            calls.wait(10)
            answer.wait(10)
            return STAFF

    slow = Slow()
    found = Administrators([], ["hpc-staff"], slow, rig.clock)
    with ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(found.includes, "alice") for _ in range(6)]
        calls.wait(10)
        answer.set()
        assert [one.result(10) for one in waiting] == [True] * 6
    assert slow.asked == ["alice"]
