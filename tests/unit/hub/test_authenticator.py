"""Logins of JupyterHub's with the portal's passwords."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from tornado.web import HTTPError

from portal.client import Client
from portal.hub import authenticator, revoking
from portal.hub.authenticator import TOKEN, LogoutHandler, SlipwayAuthenticator
from portal.hub.clients import CLIENT, FRONT_END
from tests.support.fakes import PASSWORDS, World
from tests.support.hub_requests import CLIENT_AT, VICTIM, HubUser, hub_request


def log_in(portal: str, name: str, password: str, **settings: str) -> dict[str, Any] | None:
    """What JupyterHub gets for a password, from a client that its proxy names."""
    made = SlipwayAuthenticator(portal_url=portal, **settings)
    handler: Any = SimpleNamespace(request=hub_request("127.0.0.1", f"{VICTIM}, {CLIENT_AT}"))
    data = {"username": name, "password": password}
    return asyncio.run(made.authenticate(handler, data))


def tokens(world: World) -> list[str]:
    """The purposes of alice's tokens."""
    return [login.purpose for login in world.services.logins.logins_of("alice")]


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


def test_the_portal_hears_who_asks(
    portal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, Any]] = []
    send = requests.Session.request

    def request(self: requests.Session, method: str, url: str, **options: Any) -> Any:
        sent.append(dict(options["headers"]))
        return send(self, method, url, **options)

    monkeypatch.setattr(requests.Session, "request", request)
    file = tmp_path / "token"
    file.write_text("secret\n")
    assert log_in(portal, "alice", PASSWORDS["alice"], front_end_token_file=str(file))
    password, *others = sent
    assert (password[FRONT_END], password[CLIENT]) == ("secret", CLIENT_AT)
    assert not any(FRONT_END in headers for headers in others)
    sent.clear()
    assert log_in(portal, "alice", PASSWORDS["alice"])
    assert not any(FRONT_END in headers or CLIENT in headers for headers in sent)


def test_nobody_logs_in_as_the_hub_itself_because_its_file_is_away(
    portal: str, tmp_path: Path
) -> None:
    with pytest.raises(HTTPError) as caught:
        log_in(portal, "alice", PASSWORDS["alice"], front_end_token_file=str(tmp_path / "gone"))
    assert caught.value.status_code == 503
    assert "front_end_token_file" in str(caught.value.reason)


def test_wrong_passwords_keep_nobody_waiting_who_is_logged_in(
    portal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login node answers them late: they have threads of their own."""
    found = log_in(portal, "alice", PASSWORDS["alice"])
    assert found is not None

    end = threading.Event()

    def slow(*_args: object, **_more: object) -> str:
        end.wait(60)
        return found["auth_state"][TOKEN]  # type: ignore[no-any-return]

    async def work() -> None:
        made = SlipwayAuthenticator(portal_url=portal)
        handler: Any = SimpleNamespace(request=hub_request("127.0.0.1", CLIENT_AT))
        data = {"username": "alice", "password": "wrong"}
        tries = [asyncio.create_task(made.authenticate(handler, data)) for _ in range(50)]
        try:
            await asyncio.sleep(0.1)
            assert await asyncio.wait_for(made.refresh_user(HubUser(found["auth_state"])), 20)
        finally:
            end.set()
        await asyncio.gather(*tries)

    monkeypatch.setattr(Client, "make_token", slow)
    asyncio.run(work())


def test_a_revoked_token_asks_for_a_new_login(world: World, portal: str) -> None:
    found = log_in(portal, "alice", PASSWORDS["alice"])
    assert found is not None
    made, alice = SlipwayAuthenticator(portal_url=portal), HubUser(found["auth_state"])
    assert asyncio.run(made.refresh_user(alice)) is True
    world.services.logins.revoke_all("alice", "alice", ("token",))
    assert asyncio.run(made.refresh_user(alice)) is False
    assert asyncio.run(made.refresh_user(HubUser(None))) is False


def test_nobody_is_logged_out_while_the_portal_is_away() -> None:
    made = SlipwayAuthenticator(portal_url="http://127.0.0.1:1")
    assert asyncio.run(made.refresh_user(HubUser({TOKEN: "x"}))) is True


def test_a_log_in_replaces_the_token_of_the_last_one(world: World, portal: str) -> None:
    first = log_in(portal, "alice", PASSWORDS["alice"])
    assert first is not None
    logins = world.services.logins
    logins.make_token(logins.newcomer("alice"), "JupyterHub", None, None)
    world.clock.advance(seconds=1)
    second = log_in(portal, "alice", PASSWORDS["alice"])
    assert second is not None
    assert sorted(tokens(world)) == ["", "jupyterhub"]
    made = SlipwayAuthenticator(portal_url=portal)
    assert asyncio.run(made.refresh_user(HubUser(first["auth_state"]))) is False
    assert asyncio.run(made.refresh_user(HubUser(second["auth_state"]))) is True


def test_each_hub_at_a_portal_has_a_token_of_its_own(world: World, portal: str) -> None:
    first = log_in(portal, "alice", PASSWORDS["alice"])
    assert first is not None
    world.clock.advance(seconds=1)
    assert log_in(portal, "alice", PASSWORDS["alice"], token_name="Hub of the course")
    assert tokens(world) == ["jupyterhub", "jupyterhub"]
    made = SlipwayAuthenticator(portal_url=portal)
    assert asyncio.run(made.refresh_user(HubUser(first["auth_state"]))) is True


def test_a_log_out_revokes_the_token_and_nothing_else(world: World, portal: str) -> None:
    found = log_in(portal, "alice", PASSWORDS["alice"])
    assert found is not None
    world.services.logins.make_token(world.services.logins.newcomer("alice"), "own", None, None)
    alice = HubUser(found["auth_state"] | {"other": "1"})
    asyncio.run(SlipwayAuthenticator(portal_url=portal).log_out(alice))
    assert alice.state == {"other": "1"}
    assert tokens(world) == [""]
    asyncio.run(SlipwayAuthenticator(portal_url=portal).log_out(alice))
    assert tokens(world) == [""]


def test_a_token_that_is_revoked_already_does_not_stop_a_log_out(portal: str) -> None:
    alice = HubUser({TOKEN: "slipway_x"})
    asyncio.run(SlipwayAuthenticator(portal_url=portal).log_out(alice))
    assert alice.state is None


def test_a_log_out_while_the_portal_is_away_is_made_up_for(
    world: World, portal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authenticator, "PATIENCE", 0.05)
    monkeypatch.setattr(revoking, "PAUSE", 0.05)
    found = log_in(portal, "alice", PASSWORDS["alice"])
    assert found is not None
    there = Client.revoke_own_token
    alice, answers = HubUser(found["auth_state"]), False

    def revoke(self: Client) -> None:
        there(self if answers else Client("http://127.0.0.1:1", "x"))

    async def work() -> None:
        nonlocal answers
        monkeypatch.setattr(Client, "revoke_own_token", revoke)
        await SlipwayAuthenticator(portal_url=portal).log_out(alice)
        assert alice.state is None
        assert tokens(world) == ["jupyterhub"]
        answers = True
        async with asyncio.timeout(20):
            while tokens(world):
                await asyncio.sleep(0.02)

    asyncio.run(work())


@pytest.mark.parametrize("logged_in", [True, False])
def test_jupyterhubs_log_out_is_the_authenticators(
    logged_in: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request with a server's token, or without any log-in, logs nobody out."""
    made = SlipwayAuthenticator()
    pages = dict(made.get_handlers(None))
    assert pages["/logout"] is LogoutHandler
    assert "/login" in pages
    gone: list[object] = []

    async def log_out(user: object) -> None:
        gone.append(user)

    page = LogoutHandler.__new__(LogoutHandler)
    settings = {"authenticator": SimpleNamespace(log_out=log_out)}
    page.application = SimpleNamespace(settings=settings)
    monkeypatch.setattr(page, "get_current_user_cookie", lambda: "alice" if logged_in else None)
    asyncio.run(page.handle_logout())
    assert gone == (["alice"] if logged_in else [])
