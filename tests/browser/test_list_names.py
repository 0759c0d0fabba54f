"""Names of sessions: generated ones are not reused, chosen ones get a number."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LogIn, Researcher
from tests.support.browser_sessions import row_of
from tests.support.client import Api

WHO = "alice"
STARTS = 60_000
SMALL: dict[str, Any] = {"resources": {"cpus": 1, "memory": "300m"}}


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The researcher's API client: launches independently of the page, and cleans up."""
    return researcher(WHO)


def test_launching_again_never_gives_two_sessions_one_name(log_in: LogIn, api: Api) -> None:
    chosen = api.launch(name="train", **SMALL)
    generated = api.launch(**SMALL)
    page = log_in(WHO)
    for name in ("train", generated["name"]):
        page.get_by_role("button", name=f"More for {name}", exact=True).click()
        menu = page.get_by_role("group", name=f"More for {name}", exact=True)
        menu.get_by_role("button", name="Launch again").click()
        expect(page.locator("tr.fresh")).to_have_count(1)
    expect(row_of(page, "train2")).to_have_count(1)
    names = [session["name"] for session in api.list(state="running")]
    assert len(set(names)) == len(names) == 4
    page.goto(f"{page.url.partition('?')[0]}/new?from={generated['id']}")
    expect(page.locator("#field-name")).to_have_value("")
    page.goto(page.url.partition("?")[0] + f"?from={chosen['id']}")
    expect(page.locator("#field-name")).to_have_value("train")


def test_dialogs_for_several_tell_job_and_age(log_in: LogIn, api: Api) -> None:
    for _ in range(2):
        api.launch(name="twin", **SMALL)
    page = log_in(WHO)
    page.get_by_label("Select all shown").check()
    page.get_by_role("button", name="End 2 sessions").click()
    items = page.get_by_role("dialog").get_by_role("listitem")
    expect(items).to_contain_text(["twin2", "twin"])
    expect(items.first).to_contain_text(re.compile(r"job \d+, launched less than 1 min ago"))
