"""Ends without their owner's request: above the list, dismissed, and at the ended app's address."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from flask import Flask

from portal.core.session.session import Session
from tests.support.fakes import World
from tests.unit.web.conftest import PORTAL, Api, Browser, Runner

Launched = Callable[..., Runner]
MakeApi = Callable[[str], Api]
HTML = {"Accept": "text/html", "Sec-Fetch-Dest": "document"}


def ended(world: World, runner: Runner, state: str = "TIMEOUT") -> Session:
    """The session runs, and then ends in this way."""
    runner.ready()
    world.clock.advance(minutes=60)
    world.slurm.finish(runner.job, state)
    world.worker.poll()
    found = world.store.get(runner.session.id)
    assert found is not None
    assert found.ended is not None
    return found


def strip(browser: Browser) -> str:
    """The visible text of the notices on the Sessions page; "" without any."""
    page = browser.get("/sessions/rows").text
    found = re.search(r'<section class="ended".*?</section>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", found[0]).split()) if found else ""


def test_an_end_is_shown_to_its_owner_until_dismissed(
    world: World, launched: Launched, alice: Browser, bob: Browser
) -> None:
    session = ended(world, launched(name="mine1", mounts=[{"folder": "home"}]))
    assert re.search(
        r"mine1 reached its time limit at .* Your home directory was kept\. "
        r"Launch again with more time : mine1 Log of mine1",
        strip(alice),
    )
    assert (
        f'href="/sessions/new?from={session.id}&amp;more=time#resources"'
        in alice.get("/sessions").text
    )
    assert strip(bob) == ""
    address = f"/sessions/{session.id}/dismiss/end"
    assert bob.post(address).status_code == 404
    assert strip(alice) != ""
    assert alice.post(address).headers["Location"] == "/sessions"
    assert strip(alice) == ""
    assert alice.post(address).status_code == 303


def test_ones_own_ends_and_old_ones_need_no_notice(
    world: World, launched: Launched, alice: Browser, api: MakeApi
) -> None:
    runner = launched(name="own1")
    runner.ready()
    api("alice")("DELETE", f"/sessions/{runner.session.id}")
    world.worker.poll()
    assert strip(alice) == ""
    ended(world, launched(name="old1"))
    assert strip(alice) != ""
    world.clock.advance(hours=25)
    assert strip(alice) == ""


def test_an_administrators_end_is_said(
    world: World, launched: Launched, alice: Browser, api: MakeApi
) -> None:
    runner = launched(name="mine1")
    runner.ready()
    api("admin")("DELETE", f"/sessions/{runner.session.id}")
    world.worker.poll()
    assert "mine1 was ended at" in strip(alice)
    assert "Ended by admin (an administrator)." in strip(alice)
    assert "Its files were deleted." in strip(alice)


def test_of_many_ends_a_handful_is_shown_and_all_are_dismissed_at_once(
    world: World, launched: Launched, alice: Browser
) -> None:
    for number in range(7):
        ended(world, launched(name=f"mine{number}"))
    text = strip(alice)
    assert text.endswith("and 3 more")
    assert "mine6 reached" in text
    assert "mine2 reached" not in text
    page = alice.get("/sessions").text
    found = re.search(r'formaction="(/sessions/dismiss/[^"]+)"', page)
    assert found
    assert alice.post(found[1]).status_code == 303
    assert strip(alice) == ""


@pytest.mark.parametrize(
    "until",
    [
        "yesterday",
        "4",
        "1795000000",
        "20261122",
        "2026-11-22T12:00:00",
        "2026-13-22T12:00:00Z",
        "0001-01-01T00:00:00+14:00",
    ],
)
def test_no_time_dismisses_nothing(
    world: World, launched: Launched, alice: Browser, api: MakeApi, until: str
) -> None:
    ended(world, launched())
    assert alice.post(f"/sessions/dismiss/{until}").status_code == 404
    refused = api("alice")("POST", "/sessions/dismiss", json={"until": until})
    assert refused.status_code == 422
    assert refused.json
    assert refused.json["errors"][0]["field"] == "until"
    assert strip(alice) != ""


def test_notices_are_dismissed_over_the_api(
    world: World, launched: Launched, api: MakeApi, alice: Browser
) -> None:
    session = ended(world, launched())
    call, path = api("alice"), f"/sessions/{session.id}/dismiss"
    assert api("bob")("POST", path, json={"notice": "end"}).status_code == 404
    assert api("admin")("POST", path, json={"notice": "end"}).status_code == 404
    assert call("POST", path, json={"notice": "all"}).status_code == 422
    answer = call("POST", path, json={"notice": "end"})
    assert answer.json
    assert answer.json["end"]["seen"] is not None
    assert call("POST", path, json={"notice": "end"}).json == answer.json
    later = ended(world, launched())
    assert later.ended
    assert api("bob")("POST", "/sessions/dismiss", json={"until": later.ended.isoformat()})
    assert strip(alice) != ""
    assert (
        call("POST", "/sessions/dismiss", json={"until": later.ended.isoformat()}).status_code
        == 204
    )
    assert strip(alice) == ""
    running = launched()
    running.ready()
    refused = call("POST", f"/sessions/{running.session.id}/dismiss", json={"notice": "end"})
    assert refused.status_code == 409


def test_the_wizard_proposes_twice_as_much_within_the_limits(
    world: World, launched: Launched, alice: Browser
) -> None:
    session = ended(world, launched(name="mine1", time_limit=60))
    page = alice.get(f"/sessions/new?from={session.id}&more=memory").text
    assert 'value="1.5 GB"' in page
    assert alice.get(f"/sessions/new?from={session.id}&more=everything").status_code == 200


def test_beginners_are_told_how_to_begin_and_others_are_not(
    world: World, launched: Launched, alice: Browser
) -> None:
    assert "are enough to look around" in alice.get("/sessions").text
    ended(world, launched())
    page = alice.get("/sessions").text
    assert "Nothing is running" in page
    assert "are enough to look around" not in page


def opened(app: Flask, alice: Browser, runner: Runner) -> Browser:
    """Alice's browser inside her app."""
    answer = alice.post(f"/sessions/{runner.session.id}/apps/board/open")
    link = urlsplit(answer.headers["Location"])
    inside = Browser(app, f"{link.scheme}://{link.netloc}")
    assert inside.get(f"{link.path}?{link.query}", headers=HTML).status_code == 303
    return inside


def test_the_owner_reads_at_an_ended_apps_address_what_happened(
    world: World, app: Flask, alice: Browser, bob: Browser, launched: Launched
) -> None:
    runner = launched(name="secretproject")
    inside = opened(app, alice, runner)
    ended(world, runner)
    # The app's own origin only redirects, whoever asks.
    answer = inside.get("/tree?x=1", headers=HTML)
    stranger = Browser(app, inside.base).get("/tree?x=1", headers=HTML)
    assert answer.status_code == stranger.status_code == 303
    assert answer.headers["Location"] == stranger.headers["Location"]
    assert "secretproject" not in answer.text
    assert inside.get("/.slipway/status").status_code == 401
    address = answer.headers["Location"].removeprefix(PORTAL)
    page = alice.get(address)
    assert page.status_code == 410
    assert "secretproject reached its time limit" in page.text
    assert "Its files were deleted." in page.text
    assert f'action="/sessions/{runner.session.id}/relaunch"' in page.text
    assert f'href="/sessions/{runner.session.id}/log"' in page.text
    # Others read what they read about an address that never was one.
    other, nothing = bob.get(address), bob.get("/open/nosuchlabel")
    assert other.status_code == nothing.status_code == 404
    assert other.text == nothing.text
    assert alice.get("/open/nosuchlabel").status_code == 404


def test_only_navigation_reads_it(
    world: World, app: Flask, alice: Browser, launched: Launched
) -> None:
    runner = launched()
    inside = opened(app, alice, runner)
    ended(world, runner)
    address = inside.get("/", headers=HTML).headers["Location"].removeprefix(PORTAL)
    for headers in ({"Sec-Fetch-Mode": "cors"}, {"Sec-Fetch-Dest": "iframe"}):
        assert alice.get(address, headers=headers).status_code == 404
