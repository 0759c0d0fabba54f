"""Limits on password attempts, by address and by account, and their journal."""

from __future__ import annotations

import threading

import pytest

from portal.core.admin.audit import AuditFilter
from portal.core.auth.logins import network_of
from portal.core.auth.person import Person
from portal.errors import TooManyLogins
from portal.services.admin.administration import caller_address
from tests.support.fakes import World


def tries(world: World, user: str, address: str, right: bool = False) -> int:
    """One attempt from an address; the seconds it has to wait."""
    before, attempts = caller_address.set(address), world.services.login_attempts
    try:
        attempt = attempts.take(user)
        attempts.succeeded(attempt) if right else attempts.refused(attempt)
    except TooManyLogins as error:
        return error.retry_seconds
    finally:
        caller_address.reset(before)
    return 0


def journal(world: World) -> list[tuple[str, str, str]]:
    """The journal's lines about wrong passwords, oldest first."""
    admin, wanted = Person("admin", True, ""), AuditFilter(action="login.refused")
    entries, _ = world.services.administration.events(admin, wanted, 100, None)
    return [(entry.who, entry.detail, entry.address) for entry in reversed(entries)]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("", ""),
        ("x" * 100, "x" * 64),
    ],
)
def test_one_source_is_an_ipv4_address_or_a_64(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.parametrize(
    ("seconds", "wait"), [(1, "1 second"), (2, "2 seconds"), (60, "60 seconds"), (61, "2 minutes")]
)
def test_how_long_to_wait(seconds: int, wait: str) -> None:
    assert TooManyLogins("No.", seconds).text == f"No. Wait {wait}, then try again."


def test_wrong_passwords_are_limited_by_address(world: World) -> None:
    waits = [tries(world, f"user{number}", "10.0.0.1") for number in range(202)]
    assert waits == [0] * 200 + [18, 18]
    assert tries(world, "alice", "10.0.0.2") == 0
    world.clock.advance(seconds=18)
    assert [tries(world, "x", "10.0.0.1"), tries(world, "x", "10.0.0.1")] == [0, 18]


def test_addresses_of_one_64_count_as_one(world: World) -> None:
    waits = [tries(world, "", f"2001:db8::{number:x}") for number in range(201)]
    assert waits == [0] * 200 + [18]


def test_a_class_behind_one_address_logs_in_at_once(world: World) -> None:
    """One in four types a password wrong first."""
    for number in range(300):
        if number % 4 == 0:
            assert tries(world, f"user{number}", "10.0.0.1") == 0
        assert tries(world, f"user{number}", "10.0.0.1", right=True) == 0


def test_whoever_has_logged_in_from_an_address_is_not_stopped_by_others_there(world: World) -> None:
    assert tries(world, "alice", "10.0.0.1", right=True) == 0
    for number in range(300):
        tries(world, f"user{number}", "10.0.0.1")
    assert tries(world, "bob", "10.0.0.1", right=True) == 18, "new there: it may be a guess"
    assert tries(world, "bob", "10.0.0.2", right=True) == 0
    assert tries(world, "alice", "10.0.0.1", right=True) == 0


def test_typing_errors_of_accounts_that_are_known_there_stop_no_new_one(world: World) -> None:
    for number in range(100):
        assert tries(world, f"user{number}", "10.0.0.1", right=True) == 0
    for _ in range(3):
        for number in range(100):
            assert tries(world, f"user{number}", "10.0.0.1") == 0
    assert tries(world, "bob", "10.0.0.1", right=True) == 0


def test_concurrent_guesses_at_an_address_are_paid_back(world: World) -> None:
    """All of them begin before one is refused."""
    before, attempts = caller_address.set("10.0.0.1"), world.services.login_attempts
    for attempt in [attempts.take(f"user{number}") for number in range(400)]:
        attempts.refused(attempt)
    caller_address.reset(before)
    assert tries(world, "bob", "10.0.0.1") == 201 * 18


def test_an_account_logs_in_once_a_second(world: World) -> None:
    """Each log-in occupies the login node; others are not concerned."""
    waits = [tries(world, "alice", f"10.0.{number}.1", right=True) for number in range(62)]
    assert waits == [0] * 60 + [1, 1]
    assert tries(world, "bob", "10.0.0.1", right=True) == 0


def test_attempts_per_hour_are_limited_by_account(world: World) -> None:
    waits = [tries(world, "alice", f"10.0.1.{number}") for number in range(22)]
    assert waits == [0] * 20 + [180, 180]
    assert tries(world, "bob", "10.0.1.1") == 0
    world.clock.advance(minutes=3)
    assert [tries(world, "alice", f"10.0.2.{number}") for number in range(2)] == [0, 180]


def test_guessing_does_not_lock_the_owner_out_of_known_addresses(world: World) -> None:
    assert tries(world, "alice", "192.0.2.7", right=True) == 0
    for number in range(30):
        tries(world, "alice", f"10.0.1.{number}")
    assert tries(world, "alice", "10.9.9.9") > 0, "a new address waits like the attacker"
    assert tries(world, "alice", "192.0.2.7", right=True) == 0
    # Guessing from there is limited, too.
    waits = [tries(world, "alice", "192.0.2.7") for _ in range(22)]
    assert waits == [0] * 20 + [180, 180]


def test_right_passwords_do_not_count(world: World) -> None:
    for _ in range(60):
        world.clock.advance(seconds=6)
        assert tries(world, "alice", "10.0.0.1", right=True) == 0


def test_concurrent_attempts_at_an_account_are_counted_exactly(world: World) -> None:
    waits: list[int] = []

    def go(number: int) -> None:
        waits.append(tries(world, "alice", f"10.0.1.{number}"))

    threads = [threading.Thread(target=go, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert waits.count(0) == 20


def test_wrong_passwords_are_one_line_an_hour_and_one_with_their_number(world: World) -> None:
    for _ in range(5):
        tries(world, "alice", "10.0.0.1")
        world.clock.advance(seconds=10)
    tries(world, "bob", "10.0.0.1")
    assert journal(world) == [("alice", "", "10.0.0.1"), ("bob", "", "10.0.0.1")]
    world.services.login_attempts.record_finished_hours()
    assert len(journal(world)) == 2, "the hour is not over"
    world.clock.advance(hours=1)
    world.services.login_attempts.record_finished_hours()
    world.services.login_attempts.record_finished_hours()
    assert journal(world)[2:] == [("alice", "4 more times within that hour", "10.0.0.1")]
    tries(world, "alice", "10.0.0.1")
    assert len(journal(world)) == 4


def test_many_names_from_one_address_do_not_flood_the_journal(world: World) -> None:
    for number in range(100):
        tries(world, f"name{number}", "10.0.0.1")
        world.clock.advance(seconds=6)
    lines = journal(world)
    assert len(lines) == 11
    assert lines[-1] == ("", "", "10.0.0.1")
    world.clock.advance(hours=1)
    world.services.login_attempts.record_finished_hours()
    assert journal(world)[-1] == ("", "89 more times within that hour", "10.0.0.1")


def test_spellings_of_one_name_share_its_attempts(world: World) -> None:
    """A directory that ignores case would give a guesser more attempts for each of them."""
    names = ["john.doe", "John.Doe", "JOHN.DOE"]
    waits = [tries(world, names[turn % 3], f"10.9.{turn}.1") for turn in range(21)]
    assert waits[:20] == [0] * 20
    assert waits[20] > 0
    assert tries(world, "john.do", "10.9.30.1") == 0
