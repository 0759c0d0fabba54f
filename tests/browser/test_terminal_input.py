"""The terminal: keys while scrolled back or offline, touch screens, and the text's size."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.axe import clean_in_both_themes
from tests.browser.conftest import Picture
from tests.browser.terminals import NewTerminal, Terminal, terminals
from tests.slurm.conftest import MakeApi
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

WHO = "alice"
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def session(make_api: MakeApi) -> Iterator[Json]:
    """One session for all tests here."""
    api: Api = make_api(WHO)
    yield api.running(name="typing1")
    api.clean()


@pytest.fixture
def new_terminal(browser: Browser, make_api: MakeApi, session: Json) -> Iterator[NewTerminal]:
    """Opens terminals of the session."""
    path = f"/sessions/{session['id']}/apps/terminal"
    with terminals(browser, lambda: make_api(WHO).ask("POST", path)["url"]) as make:
        yield make


def chip(terminal: Terminal) -> Locator:
    """What says that the terminal is scrolled back."""
    return terminal.page.get_by_text("press any key")


def scroll_back(terminal: Terminal, to: str) -> None:
    """Turn the wheel until a line of long ago is on the screen."""
    terminal.page.mouse.move(400, 300)

    def turned() -> bool:
        terminal.page.mouse.wheel(0, -400)
        return to in terminal.rows()

    wait_for(f"{to} after scrolling", turned, 30, 0.2)


@pytest.mark.parametrize("keys", ["emacs", "vi"])
def test_what_is_typed_while_scrolled_back_reaches_the_shell(
    terminal: Terminal, picture: Picture, keys: str
) -> None:
    terminal.tmux(f"setw -g mode-keys {keys}")
    terminal.tmux("clear-history")
    terminal.page.mouse.move(400, 300)
    terminal.page.mouse.wheel(0, -400)  # there is nothing to scroll to
    terminal.print_mark("nothing-was-lost")
    expect(chip(terminal)).to_be_hidden()

    terminal.run("seq 4000 4999")
    terminal.shows("\n4999")
    scroll_back(terminal, "4850")
    expect(chip(terminal)).to_be_visible()
    picture(terminal.page, f"terminal-scrolled-{keys}")
    terminal.run("qgn/echo typed-at-once")  # q, g, n, / are commands of the copy mode
    terminal.shows("qgn/echo typed-at-once")
    terminal.shows("No such file")
    expect(chip(terminal)).to_be_hidden()

    scroll_back(terminal, "4900")
    terminal.press("PageUp")  # still scrolls
    terminal.lacks("\n4999")
    terminal.put_on_clipboard("echo pasted-at-once")
    terminal.press("Control+V", "Enter")
    terminal.shows("\npasted-at-once")

    scroll_back(terminal, "4950")
    terminal.press("Escape")
    terminal.print_mark("escape-returns")
    scroll_back(terminal, "4950")
    terminal.drag_over("4950")
    # With vi's keys tmux includes the place under the mouse, here the line's end.
    wait_for("4950 on the clipboard", lambda: terminal.clipboard().strip() == "4950", 30)
    terminal.print_mark("selecting-returns")
    expect(chip(terminal)).to_be_hidden()


def test_a_copy_mode_turned_on_by_keyboard_keeps_its_commands(terminal: Terminal) -> None:
    terminal.tmux("setw -g mode-keys vi")
    terminal.run("seq 6000 6999")
    terminal.shows("\n6999")
    terminal.press("Control+B", "PageUp")
    terminal.lacks("\n6999")
    expect(chip(terminal)).to_be_hidden()
    terminal.press("?")
    terminal.shows("(search up)")
    terminal.page.keyboard.type("6500")
    terminal.press("Enter")
    terminal.shows("\n6500")
    terminal.press("q")
    terminal.print_mark("back-in-the-shell")


def test_keys_are_kept_while_nothing_answers(
    terminal: Terminal, cluster: Cluster, session: Json, picture: Picture
) -> None:
    page = terminal.page
    told = page.get_by_role("alert").filter(has_text="No connection; keys are kept")
    # A program that prints nothing is no lost connection.
    terminal.run("stty -echo; read -r secret; stty echo; echo got-''$secret")
    terminal.type("quietly")
    page.wait_for_timeout(7000)
    expect(told).to_be_hidden()
    terminal.press("Enter")
    terminal.shows("got-quietly")

    cluster.shell(session["node"], f"pkill -STOP -u {WHO} haproxy")
    try:
        terminal.type("echo kept-''by-the-page")
        expect(told).to_be_visible(timeout=10_000)
        picture(page, "terminal-offline")
        clean_in_both_themes(page)
    finally:
        cluster.shell(session["node"], f"pkill -CONT -u {WHO} haproxy")
    expect(told).to_be_hidden(timeout=20_000)
    terminal.press("Enter")
    terminal.shows("\nkept-by-the-page")

    page.context.set_offline(True)  # the browser itself knows
    expect(told).to_be_visible(timeout=10_000)
    page.context.set_offline(False)
    expect(told).to_be_hidden(timeout=20_000)
    terminal.print_mark("online-again")


def test_a_phone_has_the_keys_that_its_keyboard_lacks(
    new_terminal: NewTerminal, picture: Picture
) -> None:
    terminal = new_terminal(**PHONE)
    page, keys = terminal.page, terminal.page.get_by_role("toolbar", name="Keys")
    hint = page.get_by_role("button", name="Got it")
    if hint.is_visible():
        hint.tap()
    terminal.clear("PHONE")
    for name in ("Esc", "Tab", "Ctrl", "Alt", "Left", "Up", "Down", "Right", "Ctrl+C", "Paste"):
        expect(keys.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=0.99)
    picture(page, "terminal-phone")
    clean_in_both_themes(page)
    rows = page.locator(".xterm-screen").bounding_box()
    bar = keys.bounding_box()
    assert rows and bar and rows["y"] + rows["height"] <= bar["y"]

    terminal.type("cat")
    terminal.press("Enter")
    terminal.type("in-cat")
    keys.get_by_role("button", name="Ctrl+C").tap()
    terminal.shows("^C")
    terminal.type("echo ab")
    keys.get_by_role("button", name="Left").tap()
    terminal.type("X")
    terminal.press("Enter")
    terminal.shows("\naXb")
    keys.get_by_role("button", name="Up").tap()
    terminal.shows("$ echo aXb")
    ctrl = keys.get_by_role("button", name="Ctrl", exact=True)
    ctrl.tap()
    expect(ctrl).to_have_attribute("aria-pressed", "true")
    terminal.type("u")  # deletes the line
    expect(ctrl).to_have_attribute("aria-pressed", "false")
    terminal.type("ls /etc/hostn")
    keys.get_by_role("button", name="Tab").tap()
    terminal.shows("ls /etc/hostname")
    terminal.press("Enter")
    terminal.put_on_clipboard("echo from-the-clipboard")
    keys.get_by_role("button", name="Paste").tap()
    terminal.shows("echo from-the-clipboard")
    terminal.press("Enter")

    terminal.run("seq 7000 7999")
    terminal.shows("\n7999")
    swipe(terminal)
    expect(chip(terminal)).to_be_visible()
    terminal.lacks("\n7999")
    picture(page, "terminal-phone-scrolled")
    terminal.print_mark("typed-on")


def swipe(terminal: Terminal) -> None:
    """Swipe downwards with a finger, as when looking for something further up."""
    inspector = terminal.page.context.new_cdp_session(terminal.page)
    for kind, y in (("touchStart", 200), *(("touchMove", y) for y in range(240, 601, 40))):
        points = [{"x": 150, "y": y}]
        inspector.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    inspector.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    inspector.detach()


def test_no_key_bar_without_a_touch_screen(terminal: Terminal) -> None:
    expect(terminal.page.get_by_role("toolbar", name="Keys")).to_be_hidden()


def test_the_texts_size_is_kept(new_terminal: NewTerminal) -> None:
    terminal = new_terminal()
    page = terminal.page
    before = int(page.evaluate("term.cols"))
    page.keyboard.press("Control+Shift+H")
    panel = page.get_by_role("dialog", name="The terminal")
    panel.get_by_label("Text size").select_option("20")
    wait_for("fewer columns", lambda: page.evaluate("term.cols") < 0.85 * before, 10)
    panel.get_by_role("button", name="Close").click()
    terminal.print_mark("in-large-letters")
    page.reload()
    terminal.shows("in-large-letters")
    assert page.evaluate("term.options.fontSize") == 20
    expect(page).to_have_title(re.compile("typing1"))
