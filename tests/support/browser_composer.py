"""The composer's editor in a browser."""

from __future__ import annotations

from playwright.sync_api import Page


def write_script(page: Page, text: str) -> None:
    """Replace the script, as by pasting."""
    page.get_by_role("textbox", name="Script", exact=True).click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def composed_script(page: Page) -> str:
    """What the form would submit."""
    return page.locator("textarea[name=script]").input_value()
