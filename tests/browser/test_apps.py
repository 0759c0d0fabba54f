"""The app launcher and the waiting page, in a real browser on a real cluster."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, Route, expect

from tests.attack.app_access import free_ports, move
from tests.browser.axe import THEMES, clean_in_both_themes, violations
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

CUTS = 10_000
"""Milliseconds within which a window without access is cut off."""

# A page and a WebSocket that echoes everything, in the notebook image's own Tornado.
PUBLIC_PAGE = (
    "python -c 'import os, tornado.ioloop as i, tornado.web as w, tornado.websocket as s; "
    'E = type("E", (s.WebSocketHandler,), {"on_message": lambda me, m: me.write_message(m)}); '
    'P = type("P", (w.RequestHandler,), {"get": lambda me: me.write("<h1>Open house</h1>")}); '
    'w.Application([("/", P), ("/ws", E)]).listen(int(os.environ["PORT"]), "127.0.0.1"); '
    "i.IOLoop.current().start()'"
)
OPEN_WEBSOCKET = """() => new Promise((done, failed) => {
    const socket = window.talk = new WebSocket(location.origin.replace("http", "ws") + "/ws");
    socket.onopen = () => socket.send("hello");
    socket.onmessage = (event) => done(event.data);
    socket.onerror = () => failed(new Error("no WebSocket"));
})"""


def is_cut(window: Page) -> None:
    """Wait until the window's WebSocket is closed."""
    cut = "window.talk.readyState === WebSocket.CLOSED"
    # Not polled once per frame, since a background window has none.
    window.wait_for_function(cut, timeout=CUTS, polling=200)


def test_the_launcher_by_keyboard(page: Page, picture: Picture) -> None:
    link = row(page).get_by_role("link", name="Apps of launchpad")
    link.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Apps of launchpad")
    first = dialog.get_by_role("button", name="Open").first
    expect(first).to_be_focused()
    picture(page, "apps-light-1280")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Try this port").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(dialog.get_by_label("Try this port").first).to_be_focused()
    page.keyboard.type("80")
    page.keyboard.press("Enter")  # the browser itself refuses ports outside the pool
    expect(dialog).to_be_visible()
    page.wait_for_timeout(2500)  # it has been refreshed, and the input is kept
    expect(dialog.get_by_label("Try this port").first).to_have_value("80")
    expect(dialog.get_by_label("Try this port").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(link).to_be_focused()

    page.keyboard.press("Enter")
    expect(first).to_be_focused()
    card(dialog, "terminal").get_by_role("button", name="Open").focus()
    with page.context.expect_page() as opened:
        page.keyboard.press("Enter")
    expect(opened.value.locator(".xterm-screen")).to_be_visible(timeout=STARTS)
    expect(dialog).to_be_hidden()
    dialog = launcher(page)
    expect(card(dialog, "terminal")).to_contain_text("Running")
    options(card(dialog, "terminal"))
    expect(card(dialog, "terminal")).to_contain_text("Every browser, yours too")


def test_everybody_can_use_the_launcher(page: Page, picture: Picture) -> None:
    dialog = launcher(page)
    for app in dialog.locator("[data-app]").all():
        options(app)
    clean_in_both_themes(page)
    for scheme, width in (("dark", 1280), ("light", 390), ("dark", 390)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 844})
        picture(page, f"apps-{scheme}-{width}")
        inside = (
            "d => d.scrollWidth <= d.clientWidth && d.getBoundingClientRect().right <= innerWidth"
        )
        assert dialog.evaluate(inside)


def test_without_scripts_it_is_a_page(log_in: LogIn, session: Json) -> None:
    page = log_in(WHO, java_script_enabled=False)
    row(page).get_by_role("link", name="Apps of launchpad").click()
    expect(page.get_by_role("heading", name="Apps of launchpad")).to_be_visible()
    with page.context.expect_page() as opened:
        card(page.locator("main"), "terminal").get_by_role("button", name="Open").click()
    assert "/.slipway/" not in opened.value.url
    page.reload()
    options(card(page.locator("main"), "terminal"))
    card(page.locator("main"), "terminal").get_by_role("button", name="Lock out").click()
    expect(card(page.locator("main"), "terminal")).not_to_contain_text("Every browser, yours too")


def test_a_taken_port_is_reported(page: Page, session: Json, make_api: MakeApi) -> None:
    api = make_api(WHO)
    port = move(api, session["id"], "terminal", free_ports(api, session["id"], "terminal")[-1])[
        "port"
    ]
    wanted = card(launcher(page), "jupyterlab")
    options(wanted)
    wanted.get_by_label("Try this port").fill(str(port))
    told = open_from(wanted)
    expect(told.get_by_role("status")).to_contain_text(f"Port {port} is taken; it is ")
    # At a port of its own, or at its name.
    other = re.search(
        r"it is (?:on port (\d+)|at (\S+))\.", told.get_by_role("status").inner_text()
    )
    assert other is not None
    assert violations(told) == []
    told.get_by_role("button", name="Open it there").click()
    told.wait_for_url(f"**:{other[1]}/**" if other[1] else f"{other[2]}/**", timeout=STARTS)


def test_input_is_kept_when_an_app_is_added(page: Page) -> None:
    def one_more(route: Route) -> None:
        fetched = route.fetch()
        added = '<p data-live id="added">One more</p></div>'
        route.fulfill(response=fetched, body=fetched.text().rpartition("</div>")[0] + added)

    wanted = card(launcher(page), "webapp")
    command(wanted, "echo still here")
    options(wanted)
    wanted.get_by_label("Open to everybody").check()
    wanted.get_by_label("Try this port").focus()
    page.route("**/apps/now", one_more)
    expect(page.get_by_text("One more")).to_be_visible()
    expect(wanted.get_by_label("Command that starts it")).to_have_value("echo still here")
    expect(wanted.get_by_label("Open to everybody")).to_be_checked()
    expect(wanted.get_by_label("Try this port")).to_be_focused()


def test_a_failed_app_shows_its_log_and_can_be_restarted(page: Page, picture: Picture) -> None:
    wanted = card(launcher(page), "webapp")
    command(wanted, "echo this-is-why; exit 3")
    window = open_from(wanted)
    expect(window.locator("[data-message]")).to_contain_text("did not start", timeout=STARTS)
    expect(window.locator("pre")).to_contain_text("this-is-why")
    picture(window, "app-failed")
    clean_in_both_themes(window)
    with window.expect_navigation():
        window.get_by_role("link", name="Start it again as it is").click()
    expect(window.locator("pre")).to_contain_text("this-is-why", timeout=STARTS)

    wanted = card(launcher(page), "webapp")
    expect(wanted).to_contain_text("Failed")
    command(wanted, PUBLIC_PAGE)
    open_from(wanted)
    # The window that was waiting all the time is served as well.
    expect(window.get_by_role("heading", name="Open house")).to_be_visible(timeout=STARTS)


def test_open_to_everybody_until_made_private(
    page: Page, browser: Browser, session: Json, make_api: MakeApi, picture: Picture
) -> None:
    dialog = launcher(page)
    wanted = card(dialog, "webapp")
    command(wanted, PUBLIC_PAGE)
    options(wanted)
    wanted.get_by_label("Open to everybody").check()
    own = open_from(wanted)
    expect(own.get_by_role("heading", name="Open house")).to_be_visible(timeout=STARTS)
    expect(wanted.get_by_label("Command that starts it")).to_have_value(PUBLIC_PAGE)
    address = wanted.get_by_label("Address of Your web app for everybody").input_value()
    wanted.get_by_label("Address of Your web app for everybody").scroll_into_view_if_needed()
    page.bring_to_front()  # in a background window colour transitions end at any time
    picture(page, "apps-public")
    clean_in_both_themes(page)

    somebody = browser.new_context()
    try:
        stranger = somebody.new_page()
        stranger.goto(address)
        expect(stranger.get_by_role("heading", name="Open house")).to_be_visible(timeout=STARTS)
        assert stranger.evaluate(OPEN_WEBSOCKET) == "hello"
        assert own.evaluate(OPEN_WEBSOCKET) == "hello"
        wanted.get_by_role("button", name="Make private").click()
        expect(wanted.get_by_role("button", name="Make private")).to_have_count(0)
        is_cut(stranger)
        assert own.evaluate("window.talk.readyState === WebSocket.OPEN")
        stranger.goto(address)
        expect(stranger.get_by_role("button", name="Log in")).to_be_visible()
    finally:
        somebody.close()
    wanted.get_by_role("button", name="Lock out").click()
    is_cut(own)
    page.keyboard.press("Escape")
    expect(row(page)).not_to_contain_text("is open to everybody")


def test_jupyterlab_has_the_sessions_name_and_follows_the_systems_theme(page: Page) -> None:
    lab = open_from(card(launcher(page), "jupyterlab"))
    expect(lab).to_have_title(re.compile("launchpad · JupyterLab"), timeout=STARTS)
    for theme in THEMES:
        lab.emulate_media(color_scheme=theme)
        light = "true" if theme == "light" else "false"
        expect(lab.locator("body")).to_have_attribute("data-jp-theme-light", light, timeout=STARTS)
