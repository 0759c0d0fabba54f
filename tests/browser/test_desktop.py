"""The desktop: windows in the browser, copy and paste both ways, another size, reconnecting."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import clean_in_both_themes, fits, show
from tests.browser.conftest import Picture
from tests.browser.desktops import (
    COLOURS,
    MEMORY,
    SIZE,
    address,
    api,
    browsers_clipboard,
    colours,
    connected,
    context,
    cut,
    file_is,
    open_window,
    page,
    shell,
    type_text,
)
from tests.browser.firefox import firefox
from tests.support.apps import Terminal
from tests.support.client import Api, Json
from tests.support.cluster import wait_for
from tests.support.paths import ROOT

__all__ = ["api", "context", "page", "shell"]

PICTURES = ROOT / "build" / "screenshots" / "firefox"
LINES = "first line äöüß ∑\n\n\tthird line, '$(quoted)' \\ \"so\"\nthe end"
"""Several lines, one empty, with other alphabets' letters and what shells would change."""
_SIZE = "() => { const c = document.querySelector('#screen canvas'); return [c.width, c.height]; }"


@pytest.fixture(
    scope="module",
    params=[
        "blackbox",
        pytest.param("desktop", marks=pytest.mark.needs_images("desktop/4.20")),
    ],
)
def session(request: pytest.FixtureRequest, api: Api) -> Iterator[Json]:
    """A running session of a desktop's image."""
    environment = request.param
    found = api.running(
        environment=environment, name=f"{environment}1", resources={"cpus": 1, "memory": MEMORY}
    )
    yield found
    api.clean()


def selection(shell: Terminal) -> str:
    """What the desktop's programs would paste."""
    return shell.run("timeout 5 xclip -o -selection clipboard")


def test_the_desktop_is_shown_and_is_drawn_in_the_browser(
    page: Page, session: Json, picture: Picture
) -> None:
    expect(page).to_have_title(f"{session['name']} · Desktop")
    expect(page.locator("#left")).to_contain_text("min left")
    wait_for("windows", lambda: colours(page) > 3, 30)
    picture(page, f"desktop-{session['environment']}")


def test_typed_text_reaches_a_program_on_the_desktop(page: Page, shell: Terminal) -> None:
    open_window(shell, "typed", "cat > typed.txt")
    page.locator("#screen canvas").focus()
    type_text(page, "Grüße: 6 * 7 = 42 [~]\n")
    page.keyboard.press("Control+D")
    wait_for("the file", lambda: file_is(shell, "typed.txt", "Grüße: 6 * 7 = 42 [~]\n"), 20)


def test_copy_and_paste_are_exact_in_both_directions(page: Page, shell: Terminal) -> None:
    encoded = base64.b64encode(LINES.encode()).decode()
    shell.run(f"echo {encoded} | base64 -d > lines.txt")
    shell.run("xclip -selection clipboard lines.txt")
    wait_for("the browser's clipboard", lambda: browsers_clipboard(page) == LINES, 20)
    expect(page.locator("#note")).to_contain_text("Copied")
    page.evaluate("(text) => navigator.clipboard.writeText(text)", f"back: {LINES}")
    page.locator("#screen canvas").focus()
    page.keyboard.press("Control+V")
    paste = "timeout 5 xclip -o -selection clipboard > pasted.txt"
    wait_for(
        "the desktop's clipboard",
        lambda: shell.run(paste) is not None and file_is(shell, "pasted.txt", f"back: {LINES}"),
        20,
    )


def test_the_panel_copies_where_the_browser_permits_no_clipboard(
    browser: Browser, api: Api, session: Json, shell: Terminal, picture: Picture
) -> None:
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    page.goto(address(api, session))
    connected(page)
    page.get_by_role("button", name="Clipboard").click()
    text = page.get_by_label("The desktop's clipboard")
    text.fill("by the panel")
    picture(page, "desktop-clipboard")
    page.get_by_role("button", name="Send to the desktop").click()
    wait_for("the desktop's clipboard", lambda: "by the panel" in selection(shell), 20)
    shell.run("printf for-the-panel | xclip -selection clipboard")
    page.get_by_role("button", name="Clipboard").click()
    expect(text).to_have_value("for-the-panel")
    context.close()


def test_the_screen_has_the_windows_size_and_follows_it(page: Page) -> None:
    box = page.locator("#screen").bounding_box()
    assert box is not None
    expected = [int(box["width"]), int(box["height"])]
    wait_for("the window's size", lambda: page.evaluate(_SIZE) == expected, 20)
    page.set_viewport_size({"width": 900, "height": 700})
    smaller = [900, 700 - (SIZE["height"] - expected[1])]
    wait_for("the new size", lambda: page.evaluate(_SIZE) == smaller, 20)


def test_programs_go_on_while_nobody_is_connected(page: Page, shell: Terminal) -> None:
    name = "still-here"
    open_window(shell, name, "cat")
    page.reload()
    connected(page)
    cut(page)
    assert shell.run(f"pgrep -fc 'term.* -T {name}'").strip() in ("1", "2")


def test_firefox_shows_it_too(api: Api, session: Json, shell: Terminal, tmp_path: Path) -> None:
    with firefox(tmp_path) as fox:
        window = fox.windows()[0]
        window.go(address(api, session))
        window.shows("Connected", "#state")
        wait_for("windows", lambda: window.run(COLOURS) > 3, 30)
        open_window(shell, "fox", "cat > fox.txt")
        window.run("() => document.querySelector('#screen canvas').focus()")
        window.type("from Firefox", "Enter")
        window.chord("Control", "d")
        window.picture(PICTURES / f"desktop-{session['environment']}.png")
        wait_for("the file", lambda: file_is(shell, "fox.txt", "from Firefox\n"), 20)


def test_the_page_is_readable_in_both_themes_and_on_narrow_screens(
    page: Page, session: Json, picture: Picture
) -> None:
    clean_in_both_themes(page, "#bar")
    fits(page, 1280, 360)
    page.set_viewport_size({"width": 390, "height": 800})
    show(page, "dark")
    picture(page, f"desktop-{session['environment']}-narrow-dark")
    page.set_viewport_size(SIZE)
    page.get_by_role("button", name="Help").click()
    picture(page, f"desktop-{session['environment']}-help-dark")
    clean_in_both_themes(page, "#help")
