"""Services' tokens: created, used for users, revoked; every use can be traced."""

from __future__ import annotations

import pytest

from portal.core.admin.audit import AuditFilter
from portal.core.auth.person import Person
from portal.errors import Forbidden, InvalidRequest, NotFound, Unauthorized, Unavailable
from portal.services.auth.service_tokens import ServiceTokens
from tests.support.fakes import World

ADMIN = Person("admin", admin=True, login="")


@pytest.fixture
def tokens(world: World) -> ServiceTokens:
    """The service."""
    return world.services.service_tokens


def events(world: World) -> list[tuple[str, str, str, str]]:
    """The audit log, oldest first."""
    found, _ = world.services.administration.events(ADMIN, AuditFilter(), 100, None)
    return [(event.who, event.action, event.target, event.detail) for event in reversed(found)]


def test_it_acts_for_members_of_its_groups_and_never_as_an_administrator(
    world: World, tokens: ServiceTokens
) -> None:
    secret, made = tokens.make("root", "hub", ["admin"], ["research"], 30)
    alice = tokens.person(secret, "alice", "GET /api/v1/sessions", changes=False)
    assert alice == Person("alice", admin=False, login=made.hash, service="hub")
    assert not tokens.person(secret, "admin", "GET /", changes=False).admin
    with pytest.raises(Forbidden, match="may not act for bob"):
        tokens.person(secret, "bob", "GET /", changes=False)
    with pytest.raises(Forbidden, match="root is a system account"):
        tokens.person(secret, "root", "GET /", changes=False)
    with pytest.raises(Forbidden, match="no account mallory"):
        tokens.person(secret, "mallory", "GET /", changes=False)


def test_changes_are_recorded_each_time_and_reads_once_an_hour(
    world: World, tokens: ServiceTokens
) -> None:
    secret, made = tokens.make("root", "hub", ["alice"], [], 30)
    for _ in range(3):
        tokens.person(secret, "alice", "GET /api/v1/me", changes=False)
        world.clock.advance(minutes=1)
    for _ in range(2):
        tokens.person(secret, "alice", "POST /api/v1/sessions", changes=True)
    world.clock.advance(minutes=61)
    tokens.person(secret, "alice", "GET /api/v1/me", changes=False)
    assert events(world) == [
        ("root", "service.make", made.id, "hub: users alice; groups -"),
        ("hub", "service.use", "alice", "GET /api/v1/me"),
        ("hub", "service.use", "alice", "POST /api/v1/sessions"),
        ("hub", "service.use", "alice", "POST /api/v1/sessions"),
        ("hub", "service.use", "alice", "GET /api/v1/me"),
    ]


def test_a_revoked_or_expired_token_ends_at_once(world: World, tokens: ServiceTokens) -> None:
    secret, made = tokens.make("root", "hub", ["alice"], [], 30)
    tokens.person(secret, "alice", "GET /", changes=False)
    assert [token.id for token in tokens.all()] == [made.id]
    tokens.revoke("root", made.id)
    assert tokens.all() == []
    with pytest.raises(Unauthorized):
        tokens.person(secret, "alice", "GET /", changes=False)
    with pytest.raises(NotFound):
        tokens.revoke("root", made.id)
    secret, _ = tokens.make("root", "hub", ["alice"], [], 1)
    world.clock.advance(hours=25)
    with pytest.raises(Unauthorized):
        tokens.person(secret, "alice", "GET /", changes=False)


def test_a_member_who_left_the_group_is_refused_within_a_minute(
    world: World, tokens: ServiceTokens
) -> None:
    secret, _ = tokens.make("root", "hub", [], ["research"], 30)
    tokens.person(secret, "alice", "GET /", changes=False)
    world.accounts.removed.add("alice")
    tokens.person(secret, "alice", "GET /", changes=False)
    world.clock.advance(seconds=61)
    with pytest.raises(Forbidden, match="no account alice"):
        tokens.person(secret, "alice", "GET /", changes=False)


def test_nobody_is_believed_while_the_login_node_is_silent(
    world: World, tokens: ServiceTokens
) -> None:
    secret, _ = tokens.make("root", "hub", ["alice"], [], 30)
    world.accounts.silent = True
    with pytest.raises(Unavailable):
        tokens.person(secret, "alice", "GET /", changes=False)


def test_wrong_fields_are_named_and_nothing_is_stored(tokens: ServiceTokens) -> None:
    with pytest.raises(InvalidRequest) as caught:
        tokens.make("root", "hub", [], [], 0)
    assert [wrong.field for wrong in caught.value.errors] == ["users", "days"]
    assert tokens.all() == []
