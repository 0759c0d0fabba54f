"""Pages of tokens: the last one at most, and back to the same one after a revocation."""

from __future__ import annotations

import re

import pytest
from flask import Flask

from portal.core.auth.person import Person
from portal.web.pages.listing import PAGE
from tests.support.fakes import World
from tests.unit.web.conftest import Browser

ALICE = Person("alice", admin=False, login="a")


def shown(browser: Browser, path: str) -> list[str]:
    """The ids of the tokens on a page."""
    table = browser.get(path).text.partition('aria-label="API tokens"')[2]
    return re.findall('data-login="([^"]*)"', table)


@pytest.mark.parametrize("number", [PAGE, PAGE + 1])
def test_a_page_beyond_the_end_is_the_last_one(
    app: Flask, world: World, alice: Browser, number: int
) -> None:
    for index in range(number):
        world.services.logins.make_token(ALICE, f"token {index}", ("read",), 5)
    last = shown(alice, f"/account?from={(number - 1) // PAGE * PAGE}")
    assert len(last) == number - (number - 1) // PAGE * PAGE
    for path in ("/account?from=100", "/account?from=99999"):
        assert shown(alice, path) == last
        assert "Revoke all" in alice.get(path).text
    admin = Browser(app).log_in("admin")
    assert shown(admin, "/admin/people/alice?from=500") == last


def test_a_revocation_leads_back_to_its_page(app: Flask, world: World, alice: Browser) -> None:
    for index in range(PAGE + 2):
        world.services.logins.make_token(ALICE, f"token {index}", ("read",), 5)
    assert f'name="from" value="{PAGE}"' in alice.get(f"/account?from={PAGE}").text
    assert 'name="from"' not in alice.get("/account").text
    first, second = shown(alice, f"/account?from={PAGE}")
    answer = alice.post(f"/account/revoke/{first}", {"from": str(PAGE)})
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/account?from={PAGE}")
    answer = (
        Browser(app)
        .log_in("admin")
        .post(f"/admin/people/alice/revoke/{second}", {"from": str(PAGE)})
    )
    assert answer.headers["Location"] == f"/admin/people/alice?from={PAGE}"
    assert (
        len(shown(alice, answer.headers["Location"].replace("admin/people/alice", "account"))) == 50
    )


def test_nobody_has_tokens(alice: Browser) -> None:
    page = alice.get("/account?from=50").text
    assert "You have no tokens." in page
    assert "Revoke all" not in page
