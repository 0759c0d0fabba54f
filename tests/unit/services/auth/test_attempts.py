"""Limits on password attempts, by address and by account, and their journal."""

from __future__ import annotations

import threading

import pytest

from portal.core.admin.audit import AuditFilter
from portal.core.auth.logins import network_of
from portal.core.auth.person import Person
from portal.services.admin.administration import caller_address
from tests.support.fakes import World


def tries(world: World, user: str, address: str, right: bool = False) -> int:
    """One attempt from an address; the seconds it has to wait."""
    before = caller_address.set(address)
    try:
        wait = world.services.login_attempts.take(user)
        if not wait:
            done = world.services.login_attempts
            done.succeeded(user) if right else done.refused(user)
        return wait
    finally:
        caller_address.reset(before)


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


def test_attempts_per_minute_are_limited_by_address(world: World) -> None:
    waits = [tries(world, f"user{number}", "10.0.0.1") for number in range(12)]
    assert waits == [0] * 10 + [6, 6]
    assert tries(world, "alice", "10.0.0.2") == 0
    world.clock.advance(seconds=6)
    assert [tries(world, "x", "10.0.0.1"), tries(world, "x", "10.0.0.1")] == [0, 6]


def test_addresses_of_one_64_count_as_one(world: World) -> None:
    waits = [tries(world, "", f"2001:db8::{number:x}") for number in range(11)]
    assert waits == [0] * 10 + [6]


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
    waits = [tries(world, "alice", "192.0.2.7")]
    for _ in range(24):
        world.clock.advance(seconds=6)
        waits.append(tries(world, "alice", "192.0.2.7"))
    assert waits[:20] == [0] * 20
    assert all(waits[21:])


def test_right_passwords_do_not_count(world: World) -> None:
    for _ in range(60):
        world.clock.advance(seconds=6)
        assert tries(world, "alice", "10.0.0.1", right=True) == 0


def test_concurrent_attempts_are_counted_exactly(world: World) -> None:
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
