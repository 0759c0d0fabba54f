"""Log-outs while the portal is away."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from portal.client import Client, NoAnswer, Refused
from portal.hub import revoking
from portal.hub.authenticator import TOKEN, SlipwayAuthenticator
from portal.hub.connection import ask
from tests.support.hub_requests import HubUser

LOG = logging.getLogger(__name__)
AWAY = "http://127.0.0.1:1"


def revocations() -> revoking.Revocations:
    return revoking.Revocations(lambda: Client(AWAY), LOG)


async def until_done(*futures: asyncio.Future[None]) -> None:
    async with asyncio.timeout(60):
        await asyncio.gather(*futures)


def test_many_log_outs_take_no_thread_from_those_who_are_logged_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The portal accepts connections, and does not answer."""
    end, at_once, most = threading.Event(), 0, 0

    def slow(_client: Client) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        end.wait(60)
        at_once -= 1

    async def work() -> None:
        portal = SlipwayAuthenticator(portal_url=AWAY)
        users = [HubUser({TOKEN: f"slipway_{number}"}) for number in range(50)]
        leaving = [asyncio.create_task(portal.log_out(user)) for user in users]
        try:
            await asyncio.sleep(0.1)
            assert await asyncio.wait_for(ask(lambda: "answer"), 20) == "answer"
            assert most == 1
        finally:
            end.set()
        await asyncio.gather(*leaving)

    monkeypatch.setattr(Client, "revoke_own_token", slow)
    asyncio.run(work())


def test_pauses_grow_and_all_are_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def no_sleep(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    def revoke(_client: Client) -> None:
        if len(pauses) < 7:
            raise NoAnswer(AWAY)

    async def work() -> None:
        found = revocations()
        await until_done(*[found.add(f"slipway_{number}") for number in range(20)])

    monkeypatch.setattr(asyncio, "sleep", no_sleep)
    monkeypatch.setattr(Client, "revoke_own_token", revoke)
    asyncio.run(work())
    assert pauses == [5, 10, 20, 40, 60, 60, 60], "of all together"


def test_no_more_wait_than_the_bound(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The oldest is left to expire, and the log says so."""

    def revoke(_client: Client) -> None:
        raise NoAnswer(AWAY)

    async def work() -> None:
        found = revocations()
        waiting = [found.add(f"slipway_{number}") for number in range(3)]
        assert [future.done() for future in waiting] == [True, False, False]

    monkeypatch.setattr(revoking, "MOST", 2)
    monkeypatch.setattr(Client, "revoke_own_token", revoke)
    asyncio.run(work())
    assert "A token is left to expire" in caplog.text


@pytest.mark.parametrize(("status", "told"), [(401, False), (404, False), (403, True)])
def test_an_answer_that_will_not_change_is_the_last_one(
    status: int, told: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def revoke(_client: Client) -> None:
        raise Refused(status, "no")

    monkeypatch.setattr(Client, "revoke_own_token", revoke)
    asyncio.run(until_done_of("slipway_x"))
    assert ("A token is not revoked" in caplog.text) is told


async def until_done_of(token: str) -> None:
    await until_done(revocations().add(token))
