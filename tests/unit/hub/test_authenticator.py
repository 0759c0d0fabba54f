"""Logins of JupyterHub's with the portal's passwords."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import requests
from tornado.web import HTTPError

from portal.client import Client
from portal.hub.authenticator import TOKEN, SlipwayAuthenticator
from tests.fakes import PASSWORDS, World


def log_in(portal: str, name: str, password: str) -> dict[str, Any] | None:
    """What JupyterHub gets for a password."""
    made = SlipwayAuthenticator(portal_url=portal)
    data = {"username": name, "password": password}
    return asyncio.run(made.authenticate(None, data))


def test_a_password_becomes_a_token_of_the_users_own(portal: str) -> None:
    found = log_in(portal, "alice", PASSWORDS["alice"])
    assert found is not None
    assert found["name"] == "alice"
    assert Client(portal, found["auth_state"][TOKEN]).sessions() == ()


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("", ""), ("nobody", "x")])
def test_a_wrong_password_is_nobodys(portal: str, name: str, password: str) -> None:
    assert log_in(portal, name, password) is None


def test_an_administrators_token_has_no_rights_of_the_administrator_in_it(portal: str) -> None:
    found = log_in(portal, "admin", PASSWORDS["admin"])
    assert found is not None
    answer = requests.get(
        f"{portal}/api/v1/me",
        headers={"Authorization": f"Bearer {found['auth_state'][TOKEN]}"},
        timeout=30,
    )
    assert answer.json() == {"name": "admin", "admin": False}


def test_a_portal_that_is_away_is_not_a_wrong_password() -> None:
    with pytest.raises(HTTPError) as caught:
        log_in("http://127.0.0.1:1", "alice", "x")
    assert caught.value.status_code == 503


class Somebody:
    """A user of JupyterHub's."""

    def __init__(self, state: dict[str, str] | None) -> None:
        self._state = state

    async def get_auth_state(self) -> dict[str, str] | None:
        """What JupyterHub has stored."""
        return self._state


def test_a_revoked_token_asks_for_a_new_login(world: World, portal: str) -> None:
    found = log_in(portal, "alice", PASSWORDS["alice"])
    assert found is not None
    made, alice = SlipwayAuthenticator(portal_url=portal), Somebody(found["auth_state"])
    assert asyncio.run(made.refresh_user(alice)) is True
    world.services.logins.revoke_all("alice", "alice", ("token",))
    assert asyncio.run(made.refresh_user(alice)) is False
    assert asyncio.run(made.refresh_user(Somebody(None))) is False


def test_nobody_is_logged_out_while_the_portal_is_away() -> None:
    made = SlipwayAuthenticator(portal_url="http://127.0.0.1:1")
    assert asyncio.run(made.refresh_user(Somebody({TOKEN: "x"}))) is True
