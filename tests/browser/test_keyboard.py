"""By keyboard alone: from the login to a cell that has run, and the end of the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import SIZE, Researcher
from tests.support.browser_wizard import PYTHON
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

WHO = "alice"
NAME = "handsfree1"
STARTS = 60_000


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The same person's API client, to clean up."""
    return researcher(WHO)


@pytest.fixture
def page(browser: Browser, cluster: Cluster) -> Iterator[Page]:
    """A browser without a login."""
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    page.goto(f"{cluster.url}/login")
    yield page
    context.close()


def _focused(locator: Locator) -> bool:
    return bool(locator.evaluate("(one) => one === document.activeElement"))


def _tab_to(page: Page, locator: Locator, most: int = 60) -> None:
    """Press Tab until it has the focus."""
    for _ in range(most):
        if _focused(locator):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{most} times Tab do not lead to {locator}")


def _choose(page: Page, radio: Locator) -> None:
    """Choose with the arrow keys; the focus is on a radio button of the same group."""
    for _ in range(60):
        if _focused(radio):
            return
        page.keyboard.press("ArrowDown")
    raise AssertionError(f"60 times Arrow Down do not lead to {radio}")


def _runs(lab: Page, code: str) -> bool:
    lab.keyboard.press("Enter")  # from the notebook's command mode into the cell
    lab.keyboard.press("Control+A")
    lab.keyboard.type(code)
    lab.keyboard.press("Control+Enter")
    lab.wait_for_timeout(1500)
    return lab.locator(".jp-OutputArea-output").count() > 0


def test_from_the_login_to_a_cell_and_the_end(page: Page, api: Api) -> None:
    expect(page.get_by_label("User name")).to_be_focused()
    page.keyboard.type(WHO)
    page.keyboard.press("Tab")
    page.keyboard.type(Cluster.from_environment().password(WHO))
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions")

    _tab_to(page, page.get_by_role("link", name="Start a session").first)
    page.keyboard.press("Enter")
    _tab_to(page, page.locator("[name=image]:checked"))
    _choose(page, page.get_by_role("radio", name=PYTHON, exact=True))
    _tab_to(page, page.get_by_label("Session name"))
    page.keyboard.type(NAME)
    for step in ("folders", "resources", "review"):
        page.keyboard.press("Enter")
        expect(page.locator(f"#title-{step}")).to_be_focused()
        if step != "review":
            _tab_to(page, page.get_by_role("button", name="Next", exact=True))
    _tab_to(page, page.get_by_role("button", name="Confirm and launch"))
    page.keyboard.press("Enter")
    bare = page.get_by_role("button", name="Launch without a folder")
    expect(bare).to_be_visible()
    _tab_to(page, bare)
    page.keyboard.press("Enter")

    # The focus is on the new session's main button already.
    button = page.locator(f"tr[data-name={NAME}]").get_by_role("button", name="JupyterLab")
    expect(button).to_be_focused()
    with page.context.expect_page() as opened:
        page.keyboard.press("Enter")
    lab = opened.value
    card = lab.locator(".jp-LauncherCard[data-category=Notebook]").first
    expect(card).to_be_visible(timeout=STARTS)
    _tab_to(lab, card, 150)
    lab.keyboard.press("Enter")
    expect(lab.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")).to_be_visible(
        timeout=STARTS
    )
    wait_for("the cell to run", lambda: _runs(lab, "print(6*7)"), 60, 1.0)
    expect(lab.locator(".jp-OutputArea-output").first).to_contain_text("42")

    page.bring_to_front()
    _tab_to(page, page.get_by_role("button", name=f"End {NAME}"))
    page.keyboard.press("Enter")
    end = page.get_by_role("button", name="End session")
    expect(end).to_be_visible()
    _tab_to(page, end)
    page.keyboard.press("Enter")
    expect(page.locator(f"tr[data-name={NAME}]")).to_have_count(0, timeout=15_000)
