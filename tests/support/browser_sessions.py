"""The Sessions page in a browser: rows, pictures and notifications."""

from __future__ import annotations

from playwright.sync_api import Locator, Page

from tests.browser.conftest import Picture
from tests.support.cluster import wait_for

SOON = 20_000
"""Milliseconds within which the page shows a change in Slurm."""
# Chromium's headless shell denies notifications to all pages; they are counted where they are
# created.
WATCH_NOTIFICATIONS = """
window.told = [];
window.Notification = class extends EventTarget {
  constructor(title, options) { super(); window.told.push([title, options.body, options.tag]); }
  static get permission() { return "granted"; }
  static async requestPermission() { return "granted"; }
};
"""


def expect_notification(page: Page, title: str, *others: Page) -> None:
    """Wait for a notification with this beginning, shown by any of the tabs."""

    def is_shown() -> bool:
        tabs = (page, *others)
        return any(one.startswith(title) for tab in tabs for one, *_ in tab.evaluate("told"))

    wait_for(f"a notification: {title}", is_shown, SOON / 1000)


def picture_in_both_themes(page: Page, picture: Picture, name: str) -> None:
    """Screenshots in both themes, and on a telephone."""
    for theme in ("dark", "light"):
        page.evaluate(f"document.documentElement.dataset.bsTheme = '{theme}'")
        picture(page, f"{name}-{theme}")
    size = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 900})
    page.locator("table.rows").scroll_into_view_if_needed()
    page.mouse.wheel(0, 900)
    picture(page, f"{name}-390")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert size
    page.set_viewport_size(size)


def row_of(page: Page, name: str) -> Locator:
    """The row of a session."""
    return page.locator(f"tr[data-name={name}]")
