"""A session's desktop, as tests in a browser see and use it.

A test module imports the fixtures and has one of its own, `session`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from tests.slurm.conftest import MakeApi
from tests.support.apps import Terminal
from tests.support.client import Api, Json
from tests.support.cluster import wait_for

STARTS = 60_000
SIZE = ViewportSize(width=1280, height=860)
MEMORY = "900m"
# As the desktop's own programs have it.
X = "export DISPLAY=:0 XAUTHORITY=/opt/slipway-run/desktop/Xauthority"
COLOURS = """() => {
    const canvas = document.querySelector("#screen canvas");
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return new Set(new Uint32Array(data.buffer)).size;
}"""
# So that a test can cut the connection; noVNC accepts no subclass.
_REMEMBER = """
    window.sockets = [];
    window.WebSocket = new Proxy(WebSocket, {
        construct: (kind, words) => { sockets.push(new kind(...words)); return sockets.at(-1); },
    });
"""


@pytest.fixture(scope="module")
def api(make_api: MakeApi) -> Iterator[Api]:
    """The researcher's API client."""
    found = make_api("alice")
    yield found
    found.clean()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser whose user permits the clipboard."""
    permitted = ["clipboard-read", "clipboard-write"]
    found = browser.new_context(viewport=SIZE, permissions=permitted)
    yield found
    found.close()


@pytest.fixture
def page(context: BrowserContext, api: Api, session: Json) -> Page:
    """The desktop's window, connected."""
    found = context.new_page()
    found.add_init_script(_REMEMBER)
    found.goto(address(api, session))
    connected(found)
    return found


@pytest.fixture(scope="module")
def shell(api: Api, session: Json) -> Iterator[Terminal]:
    """A shell in the session, beside the desktop and not on it."""
    found = shell_in(api, session)
    yield found
    found.close()


def shell_in(api: Api, session: Json) -> Terminal:
    """A shell whose programs are shown on the desktop."""
    api.open(session["id"], "desktop")
    found = Terminal(api.open(session["id"], "terminal"))
    wait_for("the X server", lambda: "yes" in found.run("[ -S /tmp/.X11-unix/X0 ] && echo y''es"))
    found.run(X)
    return found


def address(api: Api, session: Json) -> str:
    """The desktop's address with a ticket."""
    return str(api.ask("POST", f"/sessions/{session['id']}/apps/desktop")["url"])


def connected(page: Page) -> None:
    """Wait until the desktop is shown."""
    expect(page.locator("#state")).to_have_text("Connected", timeout=STARTS)
    expect(page.locator("#screen canvas")).to_be_visible()


def cut(page: Page) -> None:
    """Lose the connection, without a reload, and wait for the next one."""
    page.evaluate("sockets.at(-1).close()")
    expect(page.get_by_role("alertdialog")).to_contain_text("The programs keep running")
    connected(page)
    expect(page.get_by_role("alertdialog")).to_be_hidden()


def open_window(shell: Terminal, title: str, command: str) -> None:
    """Open a terminal window with a shell command on the desktop; it gets the focus."""
    script = f"{title}.sh"
    shell.run(
        f"printf %s '{_coded(f'touch {title}.begun; exec {command}')}' | base64 -d > {script}"
    )
    small = f"xterm -fs 14 -T {title} -e sh {script}"
    of_xfce = f"xfce4-terminal --disable-server -T {title} -x sh {script}"
    shell.run(f"({{ setsid {small} || setsid {of_xfce}; }} > /dev/null 2>&1 &)")
    wait_for("the window", lambda: exists(shell, f"{title}.begun"), 20)


def exists(shell: Terminal, name: str) -> bool:
    """Whether a file is there in the session."""
    return "there" in shell.run(f"[ -e {name} ] && echo th''ere")


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def type_text(page: Page, text: str) -> None:
    """Type on a keyboard that has these letters; Playwright's own is an American one."""
    inspector = page.context.new_cdp_session(page)
    for letter in text:
        if letter.isascii():
            page.keyboard.type(letter)
            continue
        for kind in ("keyDown", "keyUp"):
            event = {"type": kind, "key": letter, "text": letter if kind == "keyDown" else ""}
            inspector.send("Input.dispatchKeyEvent", event)
    inspector.detach()


def colours(page: Page) -> int:
    """The number of colours on the screen."""
    return int(page.evaluate(COLOURS))


def file_is(shell: Terminal, name: str, text: str) -> bool:
    """Whether a file in the session has exactly this text."""
    expected = text.encode().hex()
    found = shell.run(f"od -An -v -tx1 {name} 2> /dev/null | tr -d ' \\n'")
    return "".join(found.split()) == expected


def browsers_clipboard(page: Page) -> str:
    """The clipboard, as any other program of the person's would paste it."""
    return str(page.evaluate("navigator.clipboard.readText()"))
