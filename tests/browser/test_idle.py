"""An unused session, as its owner sees it; and the administrators' rule for it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.browser_sessions import (
    WATCH_NOTIFICATIONS,
    expect_notification,
    picture_in_both_themes,
)
from tests.support.client import Api, Json
from tests.support.cluster import in_database, wait_for

WHO = "alice"
SOON = 30_000
"""Milliseconds within which the list shows a change."""
MEASURED = 30
"""Seconds within which the worker measures use; it does so every 20 s."""
TINY: Json = {"resources": {"cpus": 1, "memory": "600m"}}


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    """The same researcher's API client."""
    found = make_api(WHO)
    yield found
    found.clean()


@pytest.fixture
def admin(make_api: MakeApi) -> Iterator[Api]:
    """The administrator; the rule is removed afterwards."""
    found = make_api("admin")
    yield found
    found.ask("PUT", "/admin/caps", json={})


def open_window(page: Page, api: Api, session: str, app: str) -> Page:
    """Open an app's window, which gets no input from then on."""
    link = api.ask("POST", f"/sessions/{session}/apps/{app}")
    window = page.context.new_page()
    window.goto(link["url"])
    return window


def is_unused(api: Api, session: str) -> bool:
    """Whether the worker has measured at least once and found no use."""
    before = api.get(session)["last_used"]
    time.sleep(MEASURED)
    return bool(api.get(session)["last_used"] == before)


def test_warned_kept_and_ended(log_in: LogIn, api: Api, admin: Api, picture: Picture) -> None:
    page = log_in(WHO)
    page.context.add_init_script(WATCH_NOTIFICATIONS)
    page.context.add_init_script("localStorage.setItem('slipway-notify', 'on')")
    page.reload()
    session = api.running(name="unused1", **TINY)["id"]
    lab = open_window(page, api, session, "jupyterlab")
    expect(lab.locator("#jp-main-dock-panel")).to_be_visible(timeout=90_000)
    open_window(page, api, session, "terminal")
    # On a busy machine JupyterLab goes on loading for a while, which counts as use.
    wait_for("a measurement without use", lambda: is_unused(api, session), 180)
    # Let the minute without use pass for the worker, which compares stored times.
    # A long warning, to leave time for the checks.
    in_database(
        api.cluster,
        f"UPDATE session SET last_used = datetime(last_used, '-60 seconds') WHERE id = '{session}'",
    )
    admin.ask("PUT", "/admin/caps", json={"idle_minutes": 6, "idle_warning": 5})
    page.bring_to_front()
    banner, row = page.locator(f"#unused-{session}"), page.locator(f"#s-{session}")
    expect(banner).to_contain_text("unused1 has not been used since", timeout=180_000)
    expect(banner.locator(".remaining")).to_have_text(re.compile(r"in 0:0\d:\d\d"))
    expect(row).to_contain_text("unless you use it")
    expect_notification(page, "unused1 is not used and ends in")
    clean_in_both_themes(page)
    fits(page, 390, 768, 1280)
    picture_in_both_themes(page, picture, "idle-warned")
    keep = banner.get_by_role("button", name="Keep running")
    keep.focus()
    page.keyboard.press("Enter")
    expect(banner).to_have_count(0, timeout=SOON)
    expect(row).not_to_contain_text("Not used since")
    # The windows stay open all the time, and poll as usual.
    admin.ask("PUT", "/admin/caps", json={"idle_minutes": 1})
    wait_for("the end", lambda: api.get(session)["state"] == "FINISHED", 240, 2)
    expect_notification(page, "unused1 has ended")
    page.get_by_role("link", name="Finished").click()
    expect(row).to_contain_text("Ended by Slipway: nobody had used it since", timeout=SOON)
    expect(row.get_by_text("Last lines of its log")).to_be_visible(timeout=SOON)
    picture_in_both_themes(page, picture, "idle-ended")


def test_the_rule(log_in: LogIn, admin: Api, picture: Picture) -> None:
    page = log_in("admin")
    page.goto(page.url.replace("/sessions", "/admin/limits"))
    page.get_by_label("End after (minutes)").fill("120")
    page.get_by_label("Warn before (minutes)").fill("120")
    page.get_by_role("checkbox", name="Owners may open apps to everybody").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#error-idle_warning")).to_contain_text("less than the 120 minutes")
    clean_in_both_themes(page)
    fits(page, 390, 768, 1280)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        picture(page, f"idle-rule-wrong-{scheme}")
    page.get_by_label("Warn before (minutes)").fill("20")
    page.get_by_role("button", name="Save").click()
    expect(
        page.get_by_role("checkbox", name="Owners may open apps to everybody")
    ).not_to_be_checked()
    rules = admin.ask("GET", "/admin/caps")
    assert (rules["idle_minutes"], rules["idle_warning"]) == (120, 20)
    assert (rules["public_apps"], rules["preferred_ports"]) == (False, True)
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("#field-idle_minutes").scroll_into_view_if_needed()
    picture(page, "idle-rule-390")
