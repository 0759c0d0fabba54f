"""A researcher's browser: Debian's Chromium in front of the real cluster.

UPDATE_SCREENSHOTS=1 writes the README's pictures anew; otherwise they go to build/screenshots.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.cluster import ROOT, Cluster
from tests.slurm.conftest import cluster, make_api, tokens

__all__ = ["cluster", "make_api", "tokens"]

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SIZE = {"width": 1280, "height": 860}

Picture = Callable[[Page, str], None]
LogIn = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def log_in(browser: Browser, cluster: Cluster) -> Iterator[LogIn]:
    """Logs somebody in, in a browser of their own, and returns the Sessions page."""
    contexts: list[BrowserContext] = []

    def enter(user: str, **options: object) -> Page:
        context = browser.new_context(**{"viewport": SIZE, **options})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.goto(f"{cluster.url}/login")
        page.get_by_label("User name").fill(user)
        page.get_by_label("Password").fill(cluster.password(user))
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/sessions")
        return page

    yield enter
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def picture() -> Picture:
    """Takes a screenshot."""
    committed = Path(__file__).parent / "screenshots"
    folder = committed if os.environ.get("UPDATE_SCREENSHOTS") else ROOT / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)

    def take(page: Page, name: str) -> None:
        page.wait_for_timeout(400)  # colours fade over when the theme changes
        page.screenshot(path=folder / f"{name}.png")

    return take
