"""Xfce in the browser: its menu's keys, its terminal, copy and paste by their keys, its windows.

`make test-images` runs these; elsewhere, they are left out where its image is not built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Picture
from tests.browser.desktops import (
    MEMORY,
    SIZE,
    api,
    browsers_clipboard,
    connected,
    context,
    cut,
    exists,
    file_is,
    page,
    shell,
    type_text,
)
from tests.support.apps import Terminal
from tests.support.client import Api, Json
from tests.support.cluster import wait_for

__all__ = ["api", "context", "page", "shell"]

pytestmark = pytest.mark.needs_images("desktop/4.20")

LINES = "erste Zeile äöüß\nzweite Zeile ∑\nEnde"


@pytest.fixture(scope="module")
def session(api: Api) -> Iterator[Json]:
    """A running session of Xfce."""
    yield api.running(environment="desktop", name="xfce1", resources={"cpus": 1, "memory": MEMORY})
    api.clean()


def windows(shell: Terminal) -> list[str]:
    """The windows on the desktop, each as its number and its title."""
    # By their numbers: the terminal's own status line may be printed in between.
    return sorted(re.findall(r'0x[0-9a-f]+ "[^"]*"(?=: \()', shell.run("xwininfo -root -tree")))


def terminals(shell: Terminal) -> list[str]:
    """The terminal windows with this test's title, each as its number and its title."""
    return [one for one in windows(shell) if one.endswith('"kept"')]


def has_window(shell: Terminal, title: str) -> bool:
    """Whether a window with this title is there."""
    return any(f'"{title}' in one for one in windows(shell))


def open_terminal(page: Page, shell: Terminal, title: str) -> None:
    """Open a terminal by the keyboard only: Alt-F2, a command, Enter."""
    wait_for("the panel", lambda: has_window(shell, "xfce4-panel"), 60)
    page.locator("#screen canvas").focus()
    page.keyboard.press("Alt+F2")
    wait_for("the box for a command", lambda: has_window(shell, "Application Finder"), 30)
    page.keyboard.type(f"xfce4-terminal --disable-server --hide-menubar -T {title}\n")
    wait_for("the terminal", lambda: has_window(shell, title), 30)


def types(page: Page, shell: Terminal, line: str, done: str) -> None:
    """Type a command into the window in front, and wait for a file that it makes."""
    shell.run(f"rm -f {done}")
    page.locator("#screen canvas").focus()
    type_text(page, f"{line}; touch {done}\n")
    wait_for(line, lambda: exists(shell, done), 20)


def test_a_terminal_is_opened_by_keyboard_and_copies_both_ways(
    page: Page, shell: Terminal, picture: Picture
) -> None:
    open_terminal(page, shell, "by-keyboard")
    types(page, shell, "clear; printf 'Grüße ∑ %s\\n' {1..3}", "printed")
    page.keyboard.press("Control+Shift+A")
    page.keyboard.press("Control+Shift+C")
    copied = "Grüße ∑ 1\nGrüße ∑ 2\nGrüße ∑ 3"
    try:
        wait_for("the copy", lambda: copied in browsers_clipboard(page), 20)
    except AssertionError as error:
        picture(page, "desktop-xfce-not-copied")
        error.add_note(f"The clipboard: {browsers_clipboard(page)!r}")
        raise
    page.evaluate("(text) => navigator.clipboard.writeText(text)", LINES)
    page.keyboard.type("cat > pasted.txt\n")
    page.keyboard.press("Control+Shift+V")
    # Xfce's terminal asks before it takes several lines.
    wait_for("its question", lambda: has_window(shell, "Warning"), 20)
    picture(page, "desktop-xfce-pasting")
    for key in ("Tab", "Enter"):
        page.keyboard.press(key)
    wait_for("the answer", lambda: not has_window(shell, "Warning"), 20)
    page.keyboard.type("\n")
    page.keyboard.press("Control+D")
    wait_for("the file", lambda: file_is(shell, "pasted.txt", f"{LINES}\n"), 20)


def shows_size(shell: Terminal, size: str) -> bool:
    """Whether the X server says that its screen has this size."""
    return size in shell.run("xrandr")


def test_the_x_screen_takes_the_size_of_the_browsers_window(page: Page, shell: Terminal) -> None:
    box = page.locator("#screen").bounding_box()
    assert box is not None
    bar = SIZE["height"] - int(box["height"])
    for wide, high in ((1000, 760), (1400, 900)):
        page.set_viewport_size({"width": wide, "height": high})
        screen = f"current {wide} x {high - bar},"
        wait_for(screen, partial(shows_size, shell, screen), 20)


def test_a_lost_connection_comes_back_to_the_same_windows(page: Page, shell: Terminal) -> None:
    open_terminal(page, shell, "kept")
    # xwininfo gives up when a window goes while it reads: the box for commands does.
    before = wait_for("the terminal's number", lambda: terminals(shell) or None, 20)
    for lose in (cut, Page.reload):
        lose(page)
        connected(page)
        wait_for("the same window", lambda: terminals(shell) == before, 20)
    types(page, shell, "echo still > kept.txt", "kept-done")
    assert file_is(shell, "kept.txt", "still\n")
