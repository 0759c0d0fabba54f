"""The dialog for environment variables: checked by the server, pasted as lines, secrets hidden."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn, Picture
from tests.support.cluster import Cluster

PASTE = """(field, text) => {
  const data = new DataTransfer();
  data.setData("text", text);
  const how = { clipboardData: data, bubbles: true, cancelable: true };
  field.dispatchEvent(new ClipboardEvent("paste", how));
}"""


@pytest.fixture
def page(log_in: LogIn, cluster: Cluster) -> Page:
    """The wizard."""
    found = log_in("bob")
    found.goto(f"{cluster.url}/sessions/new")
    expect(found.get_by_role("button", name="Next")).to_be_visible()
    return found


@pytest.fixture
def dialog(page: Page) -> Locator:
    """The open dialog."""
    page.locator("#field-env").click()
    return page.get_by_role("dialog", name="Environment variables")


def name(dialog: Locator, number: int) -> Locator:
    """The name in a line."""
    return dialog.get_by_label(f"Name {number}", exact=True)


def value(dialog: Locator, number: int) -> Locator:
    """The value in a line."""
    return dialog.get_by_label(f"Value {number}", exact=True)


def save(dialog: Locator) -> None:
    """Press Save."""
    dialog.get_by_role("button", name="Save").click()


def test_half_filled_lines_are_marked(page: Page, dialog: Locator) -> None:
    name(dialog, 1).fill("ONLY_A_NAME")
    dialog.get_by_role("button", name="Add a variable").click()
    expect(name(dialog, 2)).to_be_focused()
    value(dialog, 2).fill("only a value")
    save(dialog)
    expect(dialog.get_by_text("Enter a value for ONLY_A_NAME")).to_be_visible()
    expect(dialog.get_by_text("Enter a name for this value")).to_be_visible()
    expect(value(dialog, 1)).to_be_focused()
    assert violations(page) == []
    value(dialog, 1).fill("x")
    dialog.get_by_role("button", name="Remove variable 2").click()
    save(dialog)
    expect(dialog).to_be_hidden()
    expect(page.locator("[data-env-summary]")).to_have_text("ONLY_A_NAME")


def test_refused_names_are_refused_in_the_dialog(
    page: Page, dialog: Locator, picture: Picture
) -> None:
    name(dialog, 1).fill("LD_PRELOAD")
    value(dialog, 1).fill("/opt/x.so")
    save(dialog)
    expect(dialog.get_by_text("LD_PRELOAD cannot be set: it is the program")).to_be_visible()
    expect(name(dialog, 1)).to_be_focused()
    picture(page, "wizard-variables")
    name(dialog, 1).fill("LIBRARY")
    save(dialog)
    expect(dialog).to_be_hidden()


def test_change_it_leads_to_the_line(page: Page, dialog: Locator) -> None:
    page.keyboard.press("Escape")
    page.evaluate(
        "text => { document.querySelector('[data-env]').value = text; }",
        '{"GOOD": "1", "LD_PRELOAD": "x"}',
    )
    page.locator(".steps [data-go=review]").click()
    page.locator("[data-error=env]").get_by_role("link", name="Change it").click()
    expect(dialog).to_be_visible()
    expect(name(dialog, 2)).to_be_focused()
    expect(name(dialog, 2)).to_have_attribute("aria-invalid", "true")


def test_lines_can_be_pasted(page: Page, dialog: Locator) -> None:
    text = "# comment\nA=1\nexport B=\"two words\"\nexport C='$HOME/x'\nD=a=b\n\n"
    name(dialog, 1).evaluate(PASTE, text)
    found = [(name(dialog, n).input_value(), value(dialog, n).input_value()) for n in range(1, 5)]
    assert found == [("A", "1"), ("B", "two words"), ("C", "$HOME/x"), ("D", "a=b")]
    expect(dialog.get_by_text("$HOME is taken literally")).to_be_visible()
    save(dialog)
    expect(page.locator("[data-env-summary]")).to_have_text("A, B, C, D")


def test_secrets_are_hidden_until_shown(dialog: Locator) -> None:
    name(dialog, 1).fill("API_TOKEN")
    value(dialog, 1).fill("hush")
    expect(value(dialog, 1)).to_have_attribute("type", "password")
    dialog.get_by_role("button", name="Show the value of variable 1").click()
    expect(value(dialog, 1)).to_have_attribute("type", "text")
    name(dialog, 1).fill("PLACE")
    expect(dialog.get_by_role("button", name="Show the value")).to_have_count(0)


def test_path_is_explained(dialog: Locator) -> None:
    name(dialog, 1).fill("PATH")
    value(dialog, 1).fill("/opt/x:$PATH")
    expect(dialog.get_by_text("front of the image's own: leave out $PATH")).to_be_visible()
