"""The page of a user's logins and API tokens, and the administrators' page of all users'."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import SIZE, LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.client import Api
from tests.support.cluster import Cluster

WHO = "bob"


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    """The same user's API client, whose token is not affected."""
    found = make_api(WHO)
    before = {token["id"] for token in found.ask("GET", "/tokens")["tokens"]}
    yield found
    for token in found.ask("GET", "/tokens")["tokens"]:
        if token["id"] not in before:
            found("DELETE", f"/tokens/{token['id']}")


def make(page: Page, name: str, days: str = "7") -> None:
    """Fill in the form and submit it."""
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Days until it expires").fill(days)
    page.get_by_role("button", name="Create a token").click()


def test_m5_a_token_is_created_and_revoked_on_the_page(
    cluster: Cluster, api: Api, log_in: LogIn, picture: Picture
) -> None:
    """M5: created with a name, shown once, used, listed, revoked."""
    page = log_in(WHO)
    page.locator("#account-menu summary").click()
    page.get_by_role("link", name="Logins and API tokens").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Logins and API tokens")
    expect(page.get_by_text("This browser")).to_be_visible()
    clean_in_both_themes(page)
    make(page, "nightly runs", "1000")
    expect(page.locator("#days:invalid")).to_be_focused()
    make(page, "nightly runs")
    secret = page.get_by_label("Your new token", exact=True).inner_text()
    assert secret.startswith("slipway_")
    clean_in_both_themes(page)
    picture(page, "account-made")
    program = Api(cluster, WHO, secret)
    assert program("GET", "/me").status_code == 200
    assert program("POST", "/folders", json={"name": "x"}).status_code == 403, "it may only read"
    page.goto(f"{cluster.url}/account")
    assert secret not in page.content()
    row = page.get_by_role("row").filter(has_text="nightly runs")
    expect(row).to_contain_text("read")
    picture(page, "account-light")
    fits(page, 390, 320, 1280)
    for theme, width in (("dark", 1280), ("light", 390)):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 860})
        picture(page, f"account-{theme}-{width}")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(SIZE)
    row.get_by_role("button", name="Revoke nightly runs").click()
    expect(page.get_by_role("status").filter(has_text="Revoked")).to_be_visible()
    expect(page.get_by_text("nightly runs")).to_have_count(0)
    assert program("GET", "/me").status_code == 401


def test_m5_all_by_the_keyboard(cluster: Cluster, api: Api, log_in: LogIn) -> None:
    """M5: the confirmation before revoking everything opens and closes by the keyboard."""
    page = log_in(WHO)
    page.goto(f"{cluster.url}/account")
    summary = page.locator("summary", has_text="Log out everywhere")
    summary.focus()
    page.keyboard.press("Enter")
    button = page.get_by_role("button", name="Log out everywhere")
    expect(button).to_be_visible()
    page.keyboard.press("Tab")
    expect(button).to_be_focused()
    clean_in_both_themes(page)
    page.keyboard.press("Escape")
    expect(button).to_be_hidden()
    expect(summary).to_be_focused()


def test_m5_administrators_see_who_is_logged_in(
    cluster: Cluster, api: Api, log_in: LogIn, picture: Picture
) -> None:
    """M5: all users' logins and tokens, each of which can be revoked."""
    api.ask("POST", "/tokens", 201, json={"name": "to be revoked", "days": 1})
    page = log_in("admin")
    page.goto(f"{cluster.url}/admin/templates")
    page.get_by_role("link", name="People").click()
    clean_in_both_themes(page)
    picture(page, "admin-people")
    page.get_by_role("link", name=WHO, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Logins of {WHO}")
    clean_in_both_themes(page)
    fits(page, 390, 1280)
    picture(page, "admin-person")
    page.get_by_role("button", name="Revoke to be revoked").click()
    expect(page.get_by_text("to be revoked")).to_have_count(0)
    names = [token["name"] for token in api.ask("GET", "/tokens")["tokens"]]
    assert "to be revoked" not in names
