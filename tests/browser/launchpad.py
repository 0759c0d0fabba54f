"""A running session, its row, and its app launcher, for the files that test apps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import LogIn
from tests.slurm.conftest import MakeApi
from tests.support.client import Api, Json

WHO = "alice"
STARTS = 60_000
"""Maximum milliseconds until an app responds on a busy machine."""


@pytest.fixture(scope="module")
def session(make_api: MakeApi) -> Iterator[Json]:
    """A running session for all tests of this file."""
    api: Api = make_api(WHO)
    yield api.running(name="launchpad")
    api.clean()


@pytest.fixture
def page(log_in: LogIn, session: Json) -> Page:
    """The Sessions page with that session."""
    found = log_in(WHO)
    expect(row(found)).to_have_attribute("data-state", "RUNNING")
    return found


def row(page: Page) -> Locator:
    """The session's row."""
    return page.locator("tr[data-name=launchpad]")


def launcher(page: Page) -> Locator:
    """Open the app launcher."""
    row(page).get_by_role("link", name="Apps of launchpad").click()
    dialog = page.get_by_role("dialog", name="Apps of launchpad")
    expect(dialog).to_be_visible()
    return dialog


def card(dialog: Locator, app: str) -> Locator:
    """An app's card in the launcher."""
    return dialog.locator(f"[data-app={app}]")


def options(card: Locator) -> None:
    """Unfold an app's options."""
    folded = card.locator("details.app-more:not([open])").get_by_title("Options")
    if folded.count():
        folded.click()


def command(card: Locator, text: str) -> None:
    """Enter the command that starts a web app."""
    options(card)
    card.get_by_label("Command that starts it").fill(text)


def open_from(card: Locator) -> Page:
    """Press Open, and return the new window."""
    with card.page.context.expect_page() as opened:
        card.get_by_role("button", name="Open").click()
    return opened.value
