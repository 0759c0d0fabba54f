"""Ends with their reasons, remaining time, holds and notifications, as their owner sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.browser_sessions import (
    SOON,
    WATCH_NOTIFICATIONS,
    expect_notification,
    picture_in_both_themes,
)
from tests.support.client import TINY, Api, Json
from tests.support.cluster import Cluster
from tests.support.faulty_images import faulty
from tests.support.slurm_settings import scontrol

__all__ = ["faulty"]

WHO = "alice"


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    """The same researcher's API client."""
    found = make_api(WHO)
    yield found
    found.clean()


def wrong(page: Page) -> list[str]:
    """axe-core's findings on the page, in light and in dark."""
    found: list[str] = []
    for theme in ("dark", "light"):
        page.evaluate(f"document.documentElement.dataset.bsTheme = '{theme}'")
        found += violations(page)
    return found


def test_a_failed_start_shows_its_reason(
    log_in: LogIn, api: Api, cluster: Cluster, faulty: str, picture: Picture
) -> None:
    page = log_in(WHO)
    broken = api.launch(environment=faulty, version="1.0", name="broken1", **TINY)["id"]
    apps = api.running(environment=faulty, version="3.0", name="faulty3", **TINY)["id"]
    api.ask("POST", f"/sessions/{apps}/apps/breaks")
    row = page.locator(f"#s-{apps}")
    expect(row).to_contain_text("Breaks did not start: it ended with exit code 3.", timeout=SOON)
    lines = row.locator("details")
    lines.locator("summary").click()
    expect(lines.locator("pre")).to_have_text("going down")
    # The next update of the list does not close it.
    api.launch(name="another1", **TINY)
    expect(page.locator("tr[data-name=another1]")).to_be_visible(timeout=SOON)
    expect(lines.locator("pre")).to_be_visible()
    assert wrong(page) == []
    picture_in_both_themes(page, picture, "ends-app")
    page.get_by_role("link", name="Failed").click()
    row = page.locator(f"#s-{broken}")
    expect(row).to_contain_text("Apptainer could not open its environment", timeout=SOON)
    row.get_by_text("Last lines of its log").press("Enter")
    expect(row.locator("pre")).to_contain_text("FATAL")
    assert wrong(page) == []
    picture_in_both_themes(page, picture, "ends-start-failed")


def test_a_hold_is_released(log_in: LogIn, api: Api, cluster: Cluster, picture: Picture) -> None:
    page = log_in(WHO)
    wide: Json = {"resources": {"cpus": 2, "memory": "300m"}}
    api.running(name="wide1", **wide)
    held = api.launch(name="held1", **wide)
    row = page.locator(f"#s-{held['id']}")
    scontrol(cluster, "hold", held["job_id"])
    expect(row.locator(".chip")).to_have_text("Held", timeout=SOON)
    expect(row).to_contain_text("An administrator holds it.")
    scontrol(cluster, "release", held["job_id"])
    expect(row.locator(".chip")).to_have_text("Pending", timeout=SOON)
    scontrol(cluster, "hold", held["job_id"], user=WHO)
    release = row.get_by_role("button", name="Release")
    expect(release).to_be_visible(timeout=SOON)
    assert wrong(page) == []
    picture_in_both_themes(page, picture, "ends-held")
    release.click()
    expect(row.locator(".chip")).to_have_text("Pending", timeout=SOON)
    expect(release).to_have_count(0)


def test_warned_extended_and_notified(
    log_in: LogIn, api: Api, cluster: Cluster, picture: Picture
) -> None:
    page = log_in(WHO)
    page.context.add_init_script(WATCH_NOTIFICATIONS)
    page.goto(f"{cluster.url}/account/notifications")
    page.get_by_role("button", name="Turn on").click()
    expect(page.get_by_role("button", name="Turn off")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#notify-say")).to_have_text("Notifications are on.")
    page.goto(f"{cluster.url}/sessions")
    session = api.launch(name="short1", time_limit=10, **TINY)["id"]
    banner = page.locator(f"#ending-{session}")
    expect(banner).to_contain_text("short1 ends at", timeout=SOON)
    row = page.locator(f"#s-{session}")
    expect(row.locator(".ends")).to_have_text(re.compile(r"ends .*in 0:0\d:\d\d"))
    # If the page has seen it waiting, it notifies that it runs; in any case, that it ends soon.
    expect_notification(page, "short1 ends in")
    assert wrong(page) == []
    picture_in_both_themes(page, picture, "ends-soon")
    banner.get_by_role("button", name=re.compile("Extend .* by 1 h")).click()
    expect(banner).to_have_count(0, timeout=SOON)
    expect(row.locator(".ends")).to_contain_text("ends")
    expect(row.locator(".ends .remaining")).to_have_count(0)  # far enough away to show no countdown
    assert api.get(session)["time_limit"] == 70
    cluster.run("ctl", "scancel", f"--name={session}")
    expect_notification(page, "short1 has ended")
    notified = page.evaluate("told")
    assert len({tag for _, _, tag in notified}) == len(notified), "each once"
    assert "by root (an administrator)" in next(
        b for t, b, _ in notified if t == "short1 has ended"
    )


def test_the_start_of_a_waiting_session_is_notified(
    log_in: LogIn, api: Api, cluster: Cluster
) -> None:
    page = log_in(WHO)
    page.context.add_init_script(WATCH_NOTIFICATIONS)
    page.context.add_init_script("localStorage.setItem('slipway-notify', 'on')")
    wide: Json = {"resources": {"cpus": 2, "memory": "300m"}}
    first = api.running(name="first1", **wide)["id"]
    api.launch(name="second1", **wide)
    page.reload()
    expect(page.locator("tr[data-name=second1]")).to_have_attribute("data-state", "PENDING")
    other = page.context.new_page()
    other.goto(page.url)
    api.stop(first)
    expect_notification(page, "second1 is running", other)
    page.wait_for_timeout(3000)
    both_tabs = page.evaluate("told") + other.evaluate("told")
    assert len({tag for *_, tag in both_tabs if "runs" in tag}) == 1
    assert not [title for title, *_ in both_tabs if "has ended" in title]


def test_denied_notifications_are_reported(log_in: LogIn, cluster: Cluster) -> None:
    page = log_in(WHO)
    page.add_init_script(
        "Object.defineProperty(Notification, 'permission', {get: () => 'denied'});"
        "Notification.requestPermission = async () => 'denied';"
    )
    page.goto(f"{cluster.url}/account/notifications")
    page.get_by_role("button", name="Turn on").click()
    expect(page.locator("#notify-say")).to_contain_text("Your browser blocks notifications")
    assert wrong(page) == []
