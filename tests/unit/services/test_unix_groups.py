"""Unix groups of users: asked rarely, never in the way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.core.cluster.limits import Limits, PartitionAccess, Reservation
from portal.core.cluster_view import names_groups
from portal.core.launch.request import parse_launch
from portal.errors import InvalidRequest
from portal.services import unix_groups
from portal.services.unix_groups import UnixGroups
from tests.support.clock import FakeClock
from tests.support.fakes import FakeAccounts, World
from tests.support.sessions import ALICE


def test_an_answer_is_used_for_a_minute() -> None:
    accounts, clock = FakeAccounts(), FakeClock()
    groups = UnixGroups(accounts.identity, clock)
    assert groups.of("alice") == frozenset({"alice", "research"})
    clock.advance(seconds=59)
    groups.of("alice")
    assert accounts.asked == ["alice"]
    clock.advance(seconds=2)
    groups.of("alice")
    assert accounts.asked == ["alice", "alice"]


def test_a_silent_login_node_is_no_answer_and_is_asked_again_soon() -> None:
    accounts, clock = FakeAccounts(), FakeClock()
    groups = UnixGroups(accounts.identity, clock)
    accounts.silent = True
    assert groups.of("alice") is None
    assert groups.of("alice") is None
    assert accounts.asked == ["alice"]
    accounts.silent = False
    clock.advance(seconds=11)
    assert groups.of("alice") == frozenset({"alice", "research"})


def test_an_unknown_account_has_no_known_groups() -> None:
    assert UnixGroups(FakeAccounts().identity, FakeClock()).of("nobody") is None


def test_few_users_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_groups, "MAX_CACHED", 2)
    groups = UnixGroups(FakeAccounts().identity, FakeClock())
    for user in ("alice", "bob", "admin", "root", "alice"):
        assert groups.of(user)
        assert len(groups._cache) <= 2


def test_only_partitions_and_reservations_name_groups() -> None:
    assert not names_groups(None)
    assert not names_groups(Limits(partitions=(PartitionAccess("main"),)))
    assert names_groups(Limits(partitions=(PartitionAccess("main", groups=("staff",)),)))
    assert names_groups(Limits(reservations=(Reservation("course", groups=("staff",)),)))


def test_a_launch_asks_for_groups_only_where_some_are_named(world: World) -> None:
    body = {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}
    request = parse_launch({**body, "resource_group": "main"})
    checks = world.services.launch_checks
    world.worker.read_partitions()
    world.worker.read_limits()
    checks.plan(ALICE, request)
    assert world.accounts.asked == []
    limits = world.status.reported().limits or Limits()
    for allowed, refused in (("research", False), ("staff", True)):
        entry = PartitionAccess("main", groups=(allowed,))
        world.status.save_limits(replace(limits, partitions=(entry,)))
        if refused:
            with pytest.raises(InvalidRequest) as caught:
                checks.plan(ALICE, request)
            assert [error.field for error in caught.value.errors] == ["resource_group"]
        else:
            checks.plan(ALICE, request)
    assert world.accounts.asked == ["alice"]
    world.accounts.silent = True
    world.clock.advance(minutes=2)
    checks.plan(ALICE, request)  # Slurm decides
