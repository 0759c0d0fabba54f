"""Announcements and maintenance: an administrator writes them, users read them and launch later."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.axe import shown
from tests.browser.conftest import SIZE, LogIn, Picture, Researcher
from tests.slurm.conftest import MakeApi
from tests.support.browser_sessions import row_of
from tests.support.browser_wizard import go_to_step, press
from tests.support.client import Api
from tests.support.cluster import Cluster

STARTS = 60_000
TEXT = "The course on containers begins on Friday"
MESSAGE = "The file system is being replaced"


@pytest.fixture
def admin(make_api: MakeApi) -> Iterator[Api]:
    """The administrator's API client; no announcement and no maintenance is left."""
    found = make_api("admin")
    withdraw(found)
    yield found
    withdraw(found)


def withdraw(admin: Api) -> None:
    """Delete all announcements, and end maintenance."""
    for one in admin.ask("GET", "/announcements")["announcements"]:
        admin("DELETE", f"/announcements/{one['id']}")
    admin("DELETE", "/maintenance")


@pytest.fixture
def alice(researcher: Researcher) -> Api:
    """A researcher's API client."""
    return researcher("alice")


def banners(page: Page) -> Locator:
    """What is told above the page's content."""
    return page.locator(".banners .banner")


def test_an_announcement_is_written_read_hidden_and_changed(
    log_in: LogIn, admin: Api, cluster: Cluster, picture: Picture
) -> None:
    page = log_in("admin")
    page.goto(f"{cluster.url}/admin/announcements")
    expect(page.get_by_text("No announcements")).to_be_visible()
    shown(page, picture, "admin-announcements-none")
    page.get_by_role("link", name="Write the first one").click()
    page.get_by_label("Text of a link").fill("Register")
    page.get_by_label("Its address").fill("register")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    expect(page.locator("#error-link-url")).to_contain_text("Begin with https://")
    shown(page, picture, "admin-announcement-wrong")
    page.get_by_label("Text", exact=True).fill(TEXT)
    page.get_by_label("Its address").fill("https://example.org/course")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved the announcement.")).to_be_visible()
    expect(page.locator("[data-announcement]")).to_contain_text(TEXT)

    alice = log_in("alice")
    told = banners(alice).filter(has_text=TEXT)
    expect(told).to_be_visible()
    expect(told.get_by_role("link", name="Register")).to_have_attribute(
        "href", "https://example.org/course"
    )
    shown(alice, picture, "banner")
    told.get_by_role("button", name=f"Hide: {TEXT}").press("Enter")
    expect(told).to_be_hidden()
    expect(alice.locator("#main")).to_be_focused()
    alice.goto(f"{cluster.url}/jobs")
    expect(told).to_be_hidden()

    page.get_by_role("link", name=f"Edit “{TEXT[:37]}").click()
    page.get_by_label("Text", exact=True).fill(f"{TEXT}, in room 5")
    page.get_by_label("Kind").select_option("warning")
    page.get_by_label("Readers may hide it").uncheck()
    page.get_by_label("Also before logging in").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-announcement]")).to_contain_text("in room 5")
    shown(page, picture, "admin-announcements")
    alice.reload()
    expect(told).to_contain_text("in room 5")
    expect(told.get_by_role("button")).to_have_count(0)


def test_what_everybody_reads_is_on_the_login_page(
    browser: Browser, admin: Api, cluster: Cluster, picture: Picture
) -> None:
    text = {"text": TEXT, "level": "warning", "on_login": True, "dismissable": False}
    admin.ask("POST", "/announcements", 201, json=text)
    admin.ask("POST", "/announcements", 201, json={"text": "Only for users"})
    admin.ask("PUT", "/maintenance", json={"message": MESSAGE})
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    page.goto(f"{cluster.url}/login")
    expect(banners(page)).to_have_count(2)
    expect(banners(page).first).to_contain_text(MESSAGE)
    expect(page.get_by_text("Only for users")).to_have_count(0)
    shown(page, picture, "login-announcement")
    context.close()


def tomorrow(hour: int) -> datetime:
    """A time of tomorrow, in this machine's zone, which is the browser's."""
    day = datetime.now().astimezone() + timedelta(days=1)
    return day.replace(hour=hour, minute=30, second=0, microsecond=0)


def test_a_launch_during_maintenance_waits_until_its_end(
    log_in: LogIn, admin: Api, alice: Api, cluster: Cluster, picture: Picture
) -> None:
    running = alice.running(name="before")
    until = tomorrow(18)
    page = log_in("admin")
    page.goto(f"{cluster.url}/admin/announcements")
    page.get_by_label("Until").fill(f"{until:%Y-%m-%dT%H:%M}")
    page.get_by_label("Message").fill(MESSAGE)
    page.get_by_role("button", name="Begin maintenance").click()
    expect(page.get_by_role("status").filter(has_text="launched waits until then")).to_be_visible()
    shown(page, picture, "admin-maintenance")

    user = log_in("alice")
    told = banners(user).filter(has_text=MESSAGE)
    expect(told).to_contain_text("Maintenance until")
    expect(told).to_contain_text(f"{MESSAGE}. Sessions go on; what is launched now starts then.")
    expect(told.locator("time")).to_have_attribute("datetime", until.astimezone(UTC).isoformat())
    user.goto(f"{cluster.url}/sessions/new", wait_until="networkidle")
    user.get_by_label("Session name").fill("later")
    go_to_step(user, "review")
    notice = user.locator("#step-review").get_by_text("queue and starts then")
    expect(notice).to_be_visible()
    shown(user, picture, "maintenance-review")
    expect(user.locator("#step-review")).not_to_contain_text("if it starts now")
    press(user, "Confirm and launch")
    press(user, "Launch without a folder")
    row = row_of(user, "later")
    expect(row).to_have_attribute("data-state", "PENDING", timeout=STARTS)
    expect(row).to_contain_text("Maintenance until", timeout=STARTS)
    expect(row).to_contain_text("it starts then.")
    shown(user, picture, "maintenance-list")
    waiting = next(one for one in alice.list() if one["name"] == "later")
    shows = cluster.run("ctl", "scontrol", "show", "job", waiting["job_id"])
    assert f"EligibleTime={until.astimezone().strftime('%Y-%m-%d')}" in shows
    assert alice.get(running["id"])["state"] == "RUNNING"

    page.get_by_role("button", name="End maintenance").click()
    expect(page.get_by_role("status").filter(has_text="Maintenance is over")).to_be_visible()
    expect(row).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
    user.reload()
    expect(banners(user)).to_have_count(0)
