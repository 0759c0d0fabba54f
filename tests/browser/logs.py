"""What tests do on the pages of logs and outputs."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect


def find_a_hundred(page: Page) -> Locator:
    """Search for the lines 1500 to 1599, in other letters; returns the search box."""
    box = page.get_by_role("searchbox")
    box.fill("LINE 00015")
    expect(page.get_by_text("100 found")).to_be_visible()
    box.press("Enter")
    expect(page.locator("#find-count")).to_have_text("1 of 100")
    expect(page.get_by_label("Follow")).not_to_be_checked()
    return box
