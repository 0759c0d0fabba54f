"""The desktop: windows in the browser, copy and paste both ways, another size, reconnecting."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from tests.apps import Terminal
from tests.browser.axe import clean_in_both_themes, fits, show
from tests.browser.conftest import Picture
from tests.client import Api, Json
from tests.cluster import Cluster, wait_for
from tests.slurm.conftest import MakeApi

STARTS = 60_000
SIZE = ViewportSize(width=1280, height=860)
# As the desktop's own programs have it.
X = "export DISPLAY=:0 XAUTHORITY=/var/tmp/.slipway/desktop/Xauthority"
_COLOURS = """() => {
    const canvas = document.querySelector("#screen canvas");
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return new Set(new Uint32Array(data.buffer)).size;
}"""
_SIZE = "() => { const c = document.querySelector('#screen canvas'); return [c.width, c.height]; }"
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


@pytest.fixture(scope="module", params=["blackbox", "desktop"])
def session(request: pytest.FixtureRequest, cluster: Cluster, api: Api) -> Iterator[Json]:
    """A running session of a desktop's image."""
    environment = request.param
    images = cluster.run("portal", "ls", "/srv/slipway/images").split()
    if environment not in images:
        pytest.skip(f"this cluster has no image {environment}")
    found = api.running(
        environment=environment, name=f"{environment}1", resources={"cpus": 1, "memory": "900m"}
    )
    yield found
    api.clean()


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
    found.goto(api.ask("POST", f"/sessions/{session['id']}/apps/desktop")["url"])
    connected(found)
    return found


@pytest.fixture(scope="module")
def shell(api: Api, session: Json) -> Iterator[Terminal]:
    """A shell in the session, which starts programs on the desktop."""
    found = Terminal(api.open(session["id"], "terminal"))
    wait_for("the X server", lambda: "yes" in found.run("[ -S /tmp/.X11-unix/X0 ] && echo y''es"))
    found.run(X)
    yield found
    found.close()


def connected(page: Page) -> None:
    """Wait until the desktop is shown."""
    expect(page.locator("#state")).to_have_text("Connected", timeout=STARTS)
    expect(page.locator("#screen canvas")).to_be_visible()


def open_terminal(page: Page, shell: Terminal, title: str) -> None:
    """Open a terminal window that has the focus, with a running `cat`."""
    before = page.evaluate(_COLOURS)
    small = f"xterm -fs 14 -T {title} -e cat"
    of_xfce = f"xfce4-terminal --disable-server -T {title} -x cat"
    shell.run(f"({{ setsid {small} || setsid {of_xfce}; }} > /dev/null 2>&1 &)")
    wait_for("a window", lambda: page.evaluate(_COLOURS) != before, 20)


def selection(shell: Terminal) -> str:
    """What the desktop's programs would paste."""
    return shell.run("timeout 5 xclip -o -selection clipboard")


def test_the_desktop_is_shown_and_is_drawn_in_the_browser(
    page: Page, session: Json, picture: Picture
) -> None:
    expect(page).to_have_title(f"{session['name']} · Desktop")
    expect(page.locator("#left")).to_contain_text("min left")
    wait_for("windows", lambda: page.evaluate(_COLOURS) > 3, 30)
    picture(page, f"desktop-{session['environment']}")


def test_copy_and_paste_work_in_both_directions(page: Page, shell: Terminal) -> None:
    shell.run("printf from-the-desktop | xclip -selection clipboard")
    wait_for(
        "the browser's clipboard",
        lambda: page.evaluate("navigator.clipboard.readText()") == "from-the-desktop",
        20,
    )
    expect(page.locator("#note")).to_contain_text("Copied")
    page.evaluate("navigator.clipboard.writeText('from-the-browser äöü ∑')")
    page.locator("#screen canvas").focus()
    page.keyboard.press("Control+V")
    wait_for("the desktop's clipboard", lambda: "from-the-browser äöü ∑" in selection(shell), 20)


def test_the_panel_copies_where_the_browser_permits_no_clipboard(
    browser: Browser, api: Api, session: Json, shell: Terminal, picture: Picture
) -> None:
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    page.goto(api.ask("POST", f"/sessions/{session['id']}/apps/desktop")["url"])
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
    open_terminal(page, shell, name)
    page.reload()
    connected(page)
    # A lost connection, without a reload.
    page.evaluate("sockets.at(-1).close()")
    expect(page.get_by_role("alertdialog")).to_contain_text("The programs keep running")
    connected(page)
    expect(page.get_by_role("alertdialog")).to_be_hidden()
    assert shell.run(f"pgrep -fc 'term.* -T {name}'").strip() in ("1", "2")


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
