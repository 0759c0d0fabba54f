"""Environment variables and several sessions at once, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import LogIn, Picture, Researcher
from tests.support.browser_wizard import confirm_launch
from tests.support.client import Api

WHO = "alice"
STARTS = 60_000


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The same researcher's API client."""
    return researcher(WHO)


@pytest.fixture
def page(log_in: LogIn, api: Api) -> Page:
    """The wizard."""
    found = log_in(WHO)
    found.get_by_role("link", name="Start a session").click()
    expect(found.get_by_role("button", name="Next")).to_be_visible()  # its script has run
    return found


def step(page: Page, name: str) -> None:
    """Go to a step of the wizard."""
    page.locator(".steps").get_by_role("link", name=name).click()


def config(page: Page) -> Locator:
    """Open the dialog."""
    page.get_by_role("button", name="Environment variables").click()
    dialog = page.get_by_role("dialog", name="Environment variables")
    expect(dialog).to_be_visible()
    return dialog


def write(dialog: Locator, number: int, name: str, value: str) -> None:
    """Fill in one line."""
    dialog.get_by_label(f"Name {number}", exact=True).fill(name)
    dialog.get_by_label(f"Value {number}", exact=True).fill(value)


def saved(page: Page) -> str:
    """The data that would be submitted."""
    return page.locator("[data-env]").input_value()


def test_the_dialog_for_variables(page: Page, api: Api, picture: Picture) -> None:
    dialog = config(page)
    expect(dialog.get_by_label("Name 1", exact=True)).to_be_focused()
    write(dialog, 1, "FIRST", "one")
    dialog.get_by_role("button", name="Add a variable").click()
    write(dialog, 2, "SECOND", "two words")
    dialog.get_by_role("button", name="How this works").click()
    expect(dialog.get_by_text("Values are taken literally")).to_be_visible()
    picture(page, "variables")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    assert saved(page) == '{"FIRST":"one","SECOND":"two words"}'
    expect(page.get_by_text("FIRST, SECOND", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Environment variables")).to_be_focused()

    # Update one, remove the other.
    dialog = config(page)
    write(dialog, 2, "SECOND", "three")
    dialog.get_by_role("button", name="Remove variable 1").click()
    dialog.get_by_label("Value 1", exact=True).press("Enter")
    expect(dialog).to_be_hidden()
    assert saved(page) == '{"SECOND":"three"}'

    dialog = config(page)
    dialog.get_by_role("button", name="Delete all").click()
    expect(dialog.get_by_label("Name 1", exact=True)).to_have_value("")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    assert saved(page) == ""


def test_closing_with_unsaved_input_asks_for_confirmation(page: Page) -> None:
    dialog = config(page)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()

    question = page.get_by_role("alertdialog")
    for close in ("Escape", "button", "backdrop"):
        dialog = config(page)
        write(dialog, 1, "FIRST", "one")
        if close == "Escape":
            page.keyboard.press("Escape")
        elif close == "button":
            dialog.get_by_role("button", name="Close").click()
        else:
            page.mouse.click(5, 5)
        expect(question).to_be_visible()
        question.get_by_role("button", name="Keep editing").click()
        expect(dialog.get_by_label("Name 1", exact=True)).to_have_value("FIRST")
        page.keyboard.press("Escape")
        question.get_by_role("button", name="Discard").click()
        expect(dialog).to_be_hidden()
        assert saved(page) == ""


def test_names_are_checked_before_they_are_saved(page: Page) -> None:
    dialog = config(page)
    write(dialog, 1, "1ST", "x")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_text("use up to 128 letters, digits and _")).to_be_visible()
    write(dialog, 1, "TWICE", "x")
    dialog.get_by_role("button", name="Add a variable").click()
    write(dialog, 2, "TWICE", "y")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_text("TWICE occurs twice")).to_be_visible()
    assert saved(page) == ""


def test_input_refused_by_the_server_is_kept_and_can_be_corrected(
    page: Page, api: Api, picture: Picture
) -> None:
    dialog = config(page)
    write(dialog, 1, "PLACE", "/elsewhere")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    page.get_by_label("Session name").fill("mended")
    step(page, "Resources")
    page.get_by_label("Number of sessions", exact=True).fill("21")
    page.get_by_label("Shared memory", exact=True).fill("9 GB")
    page.get_by_label("Memory", exact=True).fill("300 MB")
    # The checks before the launch find nothing, as if the limits had changed since then.
    page.route("**/sessions/new/check", lambda route: route.fulfill(json={"errors": {}}))
    with page.expect_response(lambda answer: answer.status == 422):
        confirm_launch(page)
    page.unroute_all()
    expect(page.get_by_text("This must be at most 20")).to_be_visible()
    expect(page.get_by_text("Shared memory is part of the memory")).to_be_visible()
    picture(page, "launcher-wrong")

    page.get_by_label("Number of sessions", exact=True).fill("2")
    page.get_by_label("Shared memory", exact=True).fill("64 MB")
    step(page, "Environment")
    expect(page.get_by_text("PLACE", exact=True)).to_be_visible()
    dialog = config(page)
    write(dialog, 1, "OTHER", "/elsewhere")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Confirm and launch").click()  # it was asked before
    for name in ("mended1", "mended2"):
        row = page.locator(f"tr[data-name={name}]")
        expect(row).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
        expect(row).to_contain_text("0.06 GB shared")
    picture(page, "launcher-several")
    assert {tuple(s["env"]) for s in api.list(state="running")} == {("OTHER",)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_everybody_can_use_the_dialog(
    page: Page, picture: Picture, scheme: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    dialog = config(page)
    write(dialog, 1, "FIRST", "one")
    dialog.get_by_role("button", name="Add a variable").click()
    write(dialog, 2, "SECOND", "two")
    dialog.get_by_role("button", name="How this works").click()
    picture(page, f"variables-{scheme}-{width}")
    page.keyboard.press("Escape")
    picture(page, f"variables-ask-{scheme}-{width}")
    inside = "const r = d.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth"
    assert page.evaluate(f"() => {{ const d = document.getElementById('env'); {inside} }}")
