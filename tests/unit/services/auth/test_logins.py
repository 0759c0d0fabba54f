"""Logins and tokens: how they are created, expire, and are revoked."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlmodel import Session as Database
from sqlmodel import select

from portal.core.admin.audit import AuditFilter
from portal.core.auth.logins import BROWSER, KINDS, TOKEN, Login
from portal.core.auth.person import Person
from portal.errors import DatabaseFull, DatabaseUnavailable, InvalidRequest, NotFound
from portal.store.tables import GrantRow, TicketRow
from tests.support.app_access import add_row, opens_app
from tests.support.fakes import World

ALICE = Person("alice", admin=False, login="")


def token(world: World, **asked: object) -> tuple[str, Login]:
    """A token of alice's."""
    values = {"name": "mine", "scopes": None, "days": None, **asked}
    return world.services.logins.make_token(ALICE, **values)  # type: ignore[arg-type]


def cookies(world: World) -> list[str]:
    """The hashes of all valid app cookies."""
    with Database(world.engine) as db:
        return list(db.exec(select(GrantRow.cookie_hash)))


def test_a_browsers_login_has_a_last_day_despite_use(world: World) -> None:
    logins = world.services.logins
    secret, made = logins.open_browser("alice")
    for _ in range(14 * 3 - 1):
        world.clock.advance(hours=8)
        login = logins.find(secret, BROWSER)
        assert login is not None
        logins.keep_alive(login)
    world.clock.advance(hours=7)
    login = logins.find(secret, BROWSER)
    assert login is not None
    assert login.expires == made.created + timedelta(days=14)
    world.clock.advance(hours=1, seconds=1)
    assert logins.find(secret, BROWSER) is None


def test_a_shorter_last_day_applies_to_existing_logins(world: World) -> None:
    logins = world.services.logins
    secret, _ = logins.open_browser("alice")
    logins.terms = type(logins.terms)(**{**vars(logins.terms), "life": timedelta(hours=1)})
    world.clock.advance(hours=2)
    assert logins.find(secret, BROWSER) is None


@pytest.mark.parametrize("error", [DatabaseFull, DatabaseUnavailable])
def test_who_only_reads_is_not_stopped_by_the_database(
    world: World, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    logins = world.services.logins
    _, login = logins.open_browser("alice")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("portal.store.logins.LoginStore.use_login", fail)
    world.clock.advance(minutes=2)
    logins.keep_alive(login)


def test_use_is_stored_once_a_minute_and_extends_no_token(world: World) -> None:
    logins = world.services.logins
    secret, made = token(world, days=2)
    world.clock.advance(seconds=5)
    logins.keep_alive(made)
    (first,) = logins.logins_of("alice")
    assert first.used == world.clock()
    world.clock.advance(seconds=59)
    logins.keep_alive(first)
    assert logins.logins_of("alice") == [first]
    world.clock.advance(hours=47)
    logins.keep_alive(made)
    (seen,) = logins.logins_of("alice", TOKEN)
    assert (seen.used, seen.expires) == (world.clock(), made.expires)
    world.clock.advance(hours=2)
    assert logins.find(secret, TOKEN) is None


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": " x"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"days": 0}, "days"),
        ({"days": 91}, "days"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["admin"]}, "scopes"),
        ({"scopes": ["read", "admin"]}, "scopes"),
    ],
)
def test_an_invalid_request_for_a_token_names_its_field(
    world: World, asked: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        token(world, **asked)
    assert [error.field for error in refused.value.errors] == [field]
    assert world.services.logins.logins_of("alice") == []


def test_a_token_created_by_a_token_has_no_more_rights(world: World) -> None:
    _, first = token(world, scopes=["write"], days=3)
    world.clock.advance(days=1)
    holder = Person("alice", admin=False, login=first.hash)
    with pytest.raises(InvalidRequest) as refused:
        world.services.logins.make_token(holder, "more", ("read", "write"), 1)
    assert refused.value.errors[0].field == "scopes"
    _, second = world.services.logins.make_token(holder, "same", None, 90)
    assert (second.scopes, second.expires) == (("write",), first.expires)


def test_a_program_has_one_token_of_each_user_for_its_purpose(world: World) -> None:
    logins = world.services.logins
    _, first = token(world, name="JupyterHub", purpose="jupyterhub")
    _, own = token(world, name="JupyterHub")
    _, others = logins.make_token(Person("bob", False, ""), "x", None, None, "jupyterhub")
    opens_app(world, first, "a")
    _, second = token(world, name="JupyterHub", purpose="jupyterhub")
    assert {one.id for one in logins.logins_of("alice", TOKEN)} == {own.id, second.id}
    assert [one.id for one in logins.logins_of("bob", TOKEN)] == [others.id]
    assert cookies(world) == []
    assert (second.purpose, own.purpose) == ("jupyterhub", "")
    admin = Person("admin", True, "")
    events, _ = world.services.administration.events(admin, AuditFilter(), 10, None)
    revoked = [(e.who, e.target, e.detail) for e in events if e.action == "token.revoke"]
    assert revoked == [("alice", first.id, "token JupyterHub: replaced by a new one")]


def test_of_tokens_that_are_created_at_once_one_is_left(world: World) -> None:
    """The later one: the earlier one does not replace it, though it is stored after it."""
    logins, store = world.services.logins, world.services.logins._store
    _, later = token(world, purpose="jupyterhub")
    world.clock.advance(seconds=-1)
    _, earlier = token(world, purpose="jupyterhub")
    assert {one.id for one in store.logins("alice", world.clock())} == {later.id, earlier.id}
    world.clock.advance(seconds=2)
    _, last = token(world, purpose="jupyterhub")
    assert [one.id for one in logins.logins_of("alice", TOKEN)] == [last.id]


def test_only_a_token_with_that_scope_has_admin_rights(world: World) -> None:
    logins, admin = world.services.logins, Person("admin", admin=True, login="")
    _, whole = logins.make_token(admin, "whole", None, None)
    _, plain = logins.make_token(admin, "plain", ("read", "write"), None)
    _, browser = logins.open_browser("admin")
    assert [logins.person(login).admin for login in (whole, plain, browser)] == [True, False, True]
    assert not logins.person(token(world)[1]).admin


def test_revoking_a_login_closes_only_what_it_opened(world: World) -> None:
    logins = world.services.logins
    (secret, one), (other_secret, other) = token(world), token(world)
    for login, cookie in ((one, "a"), (other, "b")):
        opens_app(world, login, cookie)
    with pytest.raises(NotFound):
        logins.revoke_login("bob", one.id, "bob")
    with pytest.raises(NotFound):
        logins.revoke_login("alice", one.id, "alice", (BROWSER,))
    logins.revoke_login("alice", one.id, "alice")
    assert logins.find(secret, TOKEN) is None
    assert logins.find(other_secret, TOKEN) is not None
    assert list(world.routes.map) == ["10000.b"]
    assert cookies(world) == ["b"]
    with pytest.raises(NotFound):
        logins.revoke_login("alice", one.id, "alice")


def test_revoking_all_also_closes_what_expired_logins_opened(world: World) -> None:
    logins = world.services.logins
    _, old = token(world, days=1)
    opens_app(world, old, "a")
    world.clock.advance(days=2)
    logins.expire()
    assert list(world.routes.map), "an app stays open when a login expires"
    assert logins.revoke_all("alice", "admin") == 0
    assert world.routes.map == {}


def test_grants_created_during_a_revocation_are_revoked(world: World) -> None:
    logins = world.services.logins
    _, login = token(world)
    logins.revoke_all("alice", "alice")
    # The request was authenticated before, and writes now.
    opens_app(world, login, "late")
    ticket = TicketRow(
        hash="t",
        label="10000",
        session="s" * 32,
        app="terminal",
        user="alice",
        login=login.hash,
        expires=world.clock() + timedelta(minutes=1),
    )
    add_row(world, ticket)
    logins.revoke_left_over()
    assert world.routes.map == {}
    assert cookies(world) == []
    assert world.access_store.redeem("t", "10000", "c", [], world.clock(), 8) is None
    logins.revoke_left_over()  # nothing to do


def test_revocations_are_recorded_with_their_actor(world: World) -> None:
    _, made = token(world, name="cron")
    world.services.logins.revoke_all("alice", "admin", why="left the institute")
    entries, _ = world.services.administration.events(
        Person("admin", True, ""), AuditFilter(), 10, None
    )
    assert [(e.who, e.action, e.target, e.detail) for e in entries] == [
        ("admin", "token.revoke", made.id, "token cron of alice: left the institute"),
        ("alice", "token.make", made.id, "cron: read write files:read files:write"),
    ]


def test_one_of_many_concurrent_revocations_counts(world: World) -> None:
    token(world)
    taken: list[int] = []
    threads = [
        threading.Thread(
            target=lambda: taken.append(world.services.logins.revoke_all("alice", "x"))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [0] * 7 + [1]


def test_administrators_see_all_logins(world: World) -> None:
    token(world)
    world.services.logins.open_browser("bob")
    world.services.logins.open_browser("bob")
    found = [(p.user, p.browsers, p.tokens, p.used) for p in world.services.logins.active_users()]
    assert found == [("alice", 0, 1, world.clock()), ("bob", 2, 0, world.clock())]
    assert set(KINDS) == {BROWSER, TOKEN}
