"""Your web app: its command, a command that never answers, its title, and stopping it."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.browser.launchpad import (
    STARTS,
    WHO,
    card,
    command,
    launcher,
    open_from,
    options,
    page,
    row,
    session,
)
from tests.slurm.conftest import MakeApi
from tests.support.client import Json

__all__ = ["page", "session"]

SERVES = "mkdir -p results && echo hello-from-results > results/index.html && cd results"
GOOD = f"{SERVES} && echo it-serves && exec python -u -m http.server $PORT"


def field(wanted: Locator) -> Locator:
    """The field for the command."""
    return wanted.get_by_label("Command that starts it")


def test_a_web_app_without_a_command_is_not_started(
    page: Page, make_api: MakeApi, session: Json
) -> None:
    wanted = card(launcher(page), "webapp")
    expect(field(wanted)).to_be_hidden()
    wanted.get_by_role("button", name="Open").click()
    expect(field(wanted)).to_be_focused()  # it is asked for instead
    assert len(page.context.pages) == 1
    refused = make_api(WHO)("POST", f"/sessions/{session['id']}/apps/webapp")
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["asked"]
    shown = next(a for a in make_api(WHO).get(session["id"])["apps"] if a["name"] == "webapp")
    assert shown["state"] is None


def test_a_command_is_asked_for_without_scripts(log_in: LogIn, session: Json) -> None:
    page = log_in(WHO, java_script_enabled=False)
    row(page).get_by_role("link", name="Apps of launchpad").click()
    wanted = card(page.locator("main"), "webapp")
    told = open_from(wanted)
    expect(told.get_by_text("cannot start without this")).to_be_visible()
    expect(field(card(told.locator("main"), "webapp"))).to_be_visible()


def test_a_command_that_never_answers_can_be_changed(page: Page, picture: Picture) -> None:
    wanted = card(launcher(page), "webapp")
    command(wanted, "echo my-port-is-5000; sleep 600")
    window = open_from(wanted)
    expect(window).to_have_title("launchpad · Your web app")
    expect(window.locator("[data-message]")).to_contain_text("is starting", timeout=STARTS)
    change = window.get_by_role("link", name="Change the command")
    expect(change).to_be_hidden()
    message = re.compile(r"Nothing listens on port \d+")
    expect(window.locator("[data-message]")).to_contain_text(message, timeout=STARTS)
    expect(window.locator("pre")).to_contain_text("my-port-is-5000")
    picture(window, "app-slow")
    clean_in_both_themes(window)
    wanted = card(launcher(page), "webapp")
    expect(wanted).to_contain_text(message)
    page.keyboard.press("Escape")

    change.click()
    wanted = card(window.locator("main"), "webapp")
    expect(field(wanted)).to_be_focused()
    expect(field(wanted)).to_have_value("echo my-port-is-5000; sleep 600")
    expect(wanted.locator("pre")).to_contain_text("my-port-is-5000")
    picture(window, "app-change")
    clean_in_both_themes(window)
    fits(window, 1280, 390)
    field(wanted).fill(GOOD)
    wanted.get_by_label("Title").fill("Results")
    wanted.get_by_role("button", name="Open").click()
    expect(window.get_by_text("hello-from-results")).to_be_visible(timeout=STARTS)


def test_the_title_is_in_the_row_and_the_tile(page: Page, picture: Picture) -> None:
    with page.context.expect_page() as opened:
        row(page).get_by_role("button", name="Results").click()
    expect(opened.value.get_by_text("hello-from-results")).to_be_visible(timeout=STARTS)
    wanted = card(launcher(page), "webapp")
    expect(wanted.get_by_role("heading", name="Results")).to_be_visible()
    picture(page, "apps-titled")


def test_stop_and_restart(page: Page, picture: Picture) -> None:
    wanted = card(launcher(page), "webapp")
    options(wanted)
    wanted.get_by_text("Restart or stop").click()
    expect(wanted).to_contain_text("what is not saved is lost")
    picture(page, "apps-stop")
    clean_in_both_themes(page)
    with page.expect_response("**/apps/webapp/restart"):
        wanted.get_by_role("button", name="Restart").click()
    expect(wanted.locator(".chip")).to_have_text("Running", timeout=STARTS)
    wanted.get_by_role("button", name="Restart").click()
    wanted.get_by_role("button", name="Stop").click()  # while the server still restarts it
    expect(wanted.locator(".chip")).to_have_text("Stopped", timeout=STARTS)
    expect(wanted.get_by_role("button", name="Stop")).to_have_count(0)
    window = open_from(wanted)  # starts it again, with the same command
    expect(window.get_by_text("hello-from-results")).to_be_visible(timeout=STARTS)


def test_public_names_what_is_shown(page: Page, picture: Picture) -> None:
    wanted = card(launcher(page), "webapp")
    options(wanted)
    expect(wanted).to_contain_text(
        "Everything that this app serves, including the files it can list"
    )
    expect(wanted).to_contain_text("--directory results $PORT")
    page.set_viewport_size({"width": 390, "height": 844})
    picture(page, "apps-webapp-390")
    page.emulate_media(color_scheme="dark")
    picture(page, "apps-webapp-390-dark")
