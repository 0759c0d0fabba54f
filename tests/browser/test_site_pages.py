"""A site's own name, logo and colours, and who used what: of a portal without a cluster."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import NARROW, show, shown
from tests.browser.conftest import SIZE, Picture
from tests.browser.fake_site import enter, own_name, running_site, use
from tests.support.fakes import World


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, World]]:
    """A site with a name of its own, whose users have used it."""
    with running_site(tmp_path, **own_name(tmp_path)) as (address, world):
        use(world)
        yield address, world


@pytest.fixture
def admin(browser: Browser, site: tuple[str, World]) -> Iterator[Page]:
    """The administrator's Sessions page."""
    context, page = enter(browser, site[0], "admin", viewport=SIZE)
    yield page
    context.close()


def test_use_is_chosen_shown_and_exported(admin: Page, picture: Picture) -> None:
    admin.get_by_role("link", name="Administration").click()
    admin.get_by_role("link", name="Usage").click()
    now = admin.locator("[data-now=alice]")
    expect(now).to_contain_text("1")
    admin.get_by_label("Interval").select_option("month")
    admin.get_by_label("Group by").select_option("account")
    admin.get_by_role("button", name="Show").click()
    rows = admin.get_by_role("table", name="Account").locator("[data-use]")
    expect(rows).to_have_count(2)
    shown(admin, picture, "admin-usage")
    with admin.expect_download() as started:
        admin.get_by_role("link", name="Export as CSV").click()
    lines = list(csv.DictReader(StringIO(Path(started.value.path()).read_text())))
    accounts = {
        line["name"]: float(line["core_hours"]) for line in lines if line["kind"] == "account"
    }
    assert accounts.keys() == {"physics", "chemistry"}
    months = [float(line["core_hours"]) for line in lines if line["kind"] == "month"]
    assert len(months) == 12
    assert sum(months) == pytest.approx(sum(accounts.values()))
    physics = rows.filter(has_text="physics")
    expect(physics).to_contain_text(f"{accounts['physics']:,.1f}")
    physics.get_by_role("link", name="physics").click()
    expect(admin.get_by_role("heading", name="Over time: account physics")).to_be_visible()
    expect(admin.get_by_label("Interval")).to_have_value("month")


def test_a_wrong_time_is_named(admin: Page) -> None:
    admin.goto(f"{admin.url.replace('/sessions', '')}/admin/usage?first=2026-11-20&last=2026-11-01")
    expect(admin.get_by_role("alert")).to_contain_text(
        "choose a day that is not after the last one"
    )
    expect(admin.get_by_label("First day")).to_have_attribute("aria-invalid", "true")


def test_every_page_is_the_sites_own(
    browser: Browser, site: tuple[str, World], admin: Page, picture: Picture
) -> None:
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    page.goto(f"{site[0]}/login")
    expect(page).to_have_title("Log in · Example HPC")
    expect(page.get_by_role("heading", name="Example HPC")).to_be_visible()
    shown(page, picture, "own-login")
    answer = page.goto(f"{site[0]}/nowhere")
    assert answer is not None
    assert answer.status == 404
    for found in (page, admin):
        expect(found.get_by_role("contentinfo")).to_contain_text("hpc-support@example.org")
        link = found.get_by_role("contentinfo").get_by_role("link", name="Cluster manual")
        expect(link).to_have_attribute("href", "https://docs.example.org/")
        logo = found.locator("img.site-logo").first
        assert logo.evaluate("(one) => one.complete && one.naturalWidth > 0")
        assert "Slipway" not in found.title()
    context.close()
    start = admin.get_by_role("link", name="Start a session").first
    mark = "(one) => getComputedStyle(one).backgroundColor"
    assert start.evaluate(mark) == "rgb(122, 31, 92)"
    show(admin, "dark")
    admin.wait_for_timeout(500)
    assert start.evaluate(mark) == "rgb(231, 166, 208)"
    show(admin, "light")
    shown(admin, picture, "own-sessions")
    admin.goto(f"{site[0]}/help")
    expect(admin.locator("main")).to_contain_text("Cluster manual")
    shown(admin, picture, "own-help")


def test_an_announcement_by_keyboard_alone(admin: Page) -> None:
    admin.goto(f"{admin.url.replace('/sessions', '')}/admin/announcements/new")
    admin.get_by_label("Text", exact=True).focus()
    admin.keyboard.type("Course on Friday")
    for _ in range(3):
        admin.keyboard.press("Tab")
    expect(admin.get_by_label("Kind")).to_be_focused()
    admin.keyboard.press("End")
    admin.keyboard.press("Enter")
    if not admin.url.endswith("/admin/announcements"):  # Enter in a list of choices only opens it
        admin.get_by_role("button", name="Save").press("Enter")
    admin.wait_for_url("**/admin/announcements")
    banner = admin.locator("[data-banner]")
    expect(banner).to_contain_text("Course on Friday")
    hide = banner.get_by_role("button", name="Hide: Course on Friday")
    hide.focus()
    admin.keyboard.press("Enter")
    expect(banner).to_be_hidden()
    expect(admin.locator("#main")).to_be_focused()


def test_the_open_part_of_administration_is_in_view_in_a_narrow_window(admin: Page) -> None:
    admin.set_viewport_size(NARROW)
    for part in ("templates", "announcements", "journal"):
        admin.goto(f"{admin.url.partition('/sessions')[0].partition('/admin')[0]}/admin/{part}")
        place = admin.get_by_role("navigation", name="Administration").locator("[aria-current]")
        box = place.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= NARROW["width"]
