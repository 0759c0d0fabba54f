"""The launch wizard in a browser."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

PYTHON = "Python 3.13"
STARTS = 60_000
"""Maximum milliseconds for a session, an app or a kernel to start on a busy machine."""


def fill_in(page: Page, name: str, memory: str = "600 MB") -> None:
    """Open the wizard and fill in the fields, without launching."""
    page.get_by_role("link", name="Start a session").click()
    page.get_by_role(
        "radio", name=PYTHON, exact=True
    ).check()  # the proposed one is what she used last
    page.get_by_label("Session name").fill(name)
    page.get_by_role("link", name="Resources").click()
    page.get_by_label("CPU cores", exact=True).fill("1")
    page.get_by_label("Memory", exact=True).fill(memory)


def confirm_launch(page: Page) -> None:
    """Press Confirm and launch, and confirm that no folder is intended."""
    page.get_by_role("button", name="Confirm and launch").click()
    page.get_by_role("button", name="Launch without a folder").click()


def launch(page: Page, name: str, memory: str = "600 MB") -> Locator:
    """Launch with the wizard, and return the new row."""
    fill_in(page, name, memory)
    confirm_launch(page)
    row = page.locator(f"tr[data-name={name}]")
    expect(row).to_have_count(1)
    return row


STEPS = ("environment", "folders", "resources", "review")


def expect_step(page: Page, step: str) -> None:
    """This step is shown, and no other."""
    for name in STEPS:
        shown = page.locator(f"#step-{name}")
        expect(shown).to_be_visible() if name == step else expect(shown).to_be_hidden()
    expect(page.locator(".steps [aria-current=step]")).to_have_attribute("data-go", step)


def press(page: Page, name: str) -> None:
    """Press a button of the wizard."""
    page.get_by_role("button", name=name, exact=True).click()


def go_to_step(page: Page, name: str) -> None:
    """Go to a step by the indicator."""
    page.locator(f".steps [data-go={name}]").click()
    expect_step(page, name)


def launched_ids(page: Page) -> list[str]:
    """Wait for the list, and return the ids of the new sessions."""
    rows = page.locator("#rows")  # the URL drops them as soon as they are shown
    expect(rows).to_have_attribute("data-fresh", re.compile("[0-9a-f]{32}"))
    return (rows.get_attribute("data-fresh") or "").split()
