"""Removed or locked accounts lose access, and nobody else does."""

from __future__ import annotations

import pytest

from portal.adapters.ssh.accounts import LoginNodeAccounts
from portal.core.admin.audit import AuditFilter
from portal.core.auth.accounts import read_missing, read_password_status
from portal.core.auth.logins import BROWSER
from portal.core.auth.person import Person
from portal.errors import Unavailable
from portal.services.auth.accounts import GONE, PASSWORD, REFUSED
from tests.support.app_access import opens_app
from tests.support.fakes import World

PEOPLE = ("alice", "bob", "carol", "dave")


def enter_all(world: World) -> dict[str, str]:
    """Log everybody in and open an app; their secrets."""
    secrets = {}
    for user in PEOPLE:
        secrets[user], login = world.services.logins.open_browser(user)
        opens_app(world, login, user)
    return secrets


def with_access(world: World, secrets: dict[str, str]) -> set[str]:
    """The users who are logged in and in an app."""
    logged_in = {u for u, s in secrets.items() if world.services.logins.find(s, BROWSER)}
    assert {key.partition(".")[2] for key in world.routes.map} == logged_in
    return logged_in


def account_events(world: World) -> list[str]:
    """The journal's lines about accounts."""
    admin, wanted = Person("admin", True, ""), AuditFilter(action="account.out")
    return [e.detail for e in world.services.administration.events(admin, wanted, 9, None)[0]]


@pytest.mark.parametrize("how", ["removed", "refused", "locked"])
def test_a_refused_account_loses_access(world: World, how: str) -> None:
    secrets, watch = enter_all(world), world.services.account_watch
    watch.check()
    assert with_access(world, secrets) == set(PEOPLE)
    if how == "locked":
        world.accounts.passwords["bob"] = "L"
    else:
        getattr(world.accounts, how).add("bob")
    watch.check()
    assert with_access(world, secrets) == {"alice", "carol", "dave"}
    watch.check()
    assert account_events(world) == [{"removed": GONE, "refused": REFUSED, "locked": PASSWORD}[how]]


def test_a_silent_login_node_logs_nobody_out(world: World) -> None:
    secrets, watch = enter_all(world), world.services.account_watch
    watch.check()
    world.accounts.silent = True
    with pytest.raises(Unavailable):
        watch.check()
    assert with_access(world, secrets) == set(PEOPLE)


def test_many_vanished_accounts_are_not_trusted_at_once(world: World) -> None:
    secrets, watch = enter_all(world), world.services.account_watch
    world.accounts.removed |= {"alice", "bob", "carol"}
    watch.check()
    world.clock.advance(minutes=9)
    watch.check()
    assert with_access(world, secrets) == set(PEOPLE)
    world.clock.advance(minutes=2)
    watch.check()
    assert with_access(world, secrets) == {"dave"}


def test_a_password_that_was_never_usable_proves_nothing(world: World) -> None:
    secrets, watch = enter_all(world), world.services.account_watch
    world.accounts.passwords = dict.fromkeys(PEOPLE, "L")  # Kerberos, for example
    for _ in range(3):
        watch.check()
    assert with_access(world, secrets) == set(PEOPLE)


def test_a_readmitted_account_may_log_in_again(world: World) -> None:
    secrets, watch = enter_all(world), world.services.account_watch
    world.accounts.refused.add("bob")
    watch.check()
    world.accounts.refused.clear()
    secrets["bob"], login = world.services.logins.open_browser("bob")
    opens_app(world, login, "bob")
    watch.check()
    assert with_access(world, secrets) == set(PEOPLE)


def test_a_limited_number_is_checked_in_turn(world: World) -> None:
    for number in range(400):
        world.services.logins.open_browser(f"user{number}")
    for _ in range(3):
        world.clock.advance(seconds=25)
        before = len(world.accounts.asked)
        world.services.account_watch.check()
        assert len(world.accounts.asked) - before == 150
    assert len(set(world.accounts.asked)) == 400


def test_inactive_users_are_not_checked(world: World) -> None:
    world.services.logins.open_browser("alice")
    world.clock.advance(minutes=11)
    world.services.account_watch.check()
    assert world.accounts.asked == []


def test_passwd_is_parsed_strictly() -> None:
    text = "alice:x:1001:1001::/home/alice:/bin/bash\nbob:x:1:1::/home/bob:/usr/sbin/nologin\nx\n"
    assert read_missing(["alice", "bob", "carol"], text) == {"bob", "carol"}


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("alice L 2026-11-21 0 99999 7 -1\n", "L"),
        ("welcome\nalice P 2026-11-21 0 99999 7 -1\n", "P"),
        ("alice L\n", ""),  # no entry in shadow(5): LDAP
        ("bob L 2026-11-21 0 99999 7 -1\n", ""),
        ("alice NP 2026-11-21 0 99999 7 -1\n", ""),
        ("", ""),
    ],
)
def test_the_password_status_is_parsed_strictly(text: str, status: str) -> None:
    assert read_password_status("alice", text) == status


def test_a_refusal_counts_if_repeated_while_others_are_accepted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[str | None] = []
    node = LoginNodeAccounts(world.services.settings.login, None, world.slurm)  # type: ignore[arg-type]
    monkeypatch.setattr(node, "_log_in", lambda _user, _hosts: (answers.pop(0), "login"))
    answers[:] = [None, "", None]
    assert not node.standing("alice").may_log_in
    answers[:] = [None, "", "alice P 2026-11-21 0 99999 7 -1"]
    assert node.standing("alice").password == "P"
    answers[:] = [None, None]
    with pytest.raises(Unavailable):
        node.standing("alice")
