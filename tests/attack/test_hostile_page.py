"""A page of bob's in alice's browser, where she is logged in and at work: it gets nothing.

Each attempt is one that would work if we forgot something; that attempts work at all is seen at a
server that lets everybody in.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState
from websockets.sync.server import Server, ServerConnection, serve

from tests.browser.conftest import logging_in
from tests.client import OVER, Api, Json
from tests.cluster import Cluster, wait_for
from tests.site import hostile_app
from tests.slurm.conftest import MakeApi

SCRIPT = (Path(__file__).parent / "hostile.js").read_text()
NAMES = ("slipway", "__Host-slipway")
REFUSED = ("TypeError", "SecurityError", "opaque", "refused")
STARTS = 60_000

pytestmark = pytest.mark.timeout(300)


class Open(BaseHTTPRequestHandler):
    """Lets everybody do everything: what works here and not at ours, ours refuses."""

    heard: list[str]

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.heard.append(f"{self.command} {self.path} {body}")
        script = self.path.endswith(".js")
        text = b"window.loaded = 1" if script else b"<body>welcome</body>"
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if script else "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Access-Control-Allow-Origin", self.headers.get("Origin", "*"))
        self.send_header("Access-Control-Allow-Credentials", "true")
        self.send_header("Access-Control-Allow-Headers", "content-type")
        self.send_header("Access-Control-Allow-Methods", "PUT")
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_OPTIONS = _answer  # noqa: N815

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@dataclass
class Control:
    """The server that lets everybody in."""

    url: str
    socket: str
    heard: list[str]


def _hello(connection: ServerConnection) -> None:
    connection.send("hello")


@pytest.fixture(scope="module")
def control() -> Iterator[Control]:
    """It, by HTTP and by WebSocket."""
    Open.heard = []
    http = ThreadingHTTPServer(("127.0.0.1", 0), Open)
    sockets: Server = serve(_hello, "127.0.0.1", 0)
    for server in (http, sockets):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    place = sockets.socket.getsockname()
    yield Control(
        f"http://127.0.0.1:{http.server_port}", f"ws://127.0.0.1:{place[1]}/ws", Open.heard
    )
    sockets.shutdown()
    http.shutdown()
    http.server_close()


@pytest.fixture(scope="module")
def alice(make_api: MakeApi) -> Iterator[Api]:
    """Alice as a program, to see what became of her things."""
    api = make_api("alice")
    yield api
    api.clean()


@pytest.fixture(scope="module")
def bob(make_api: MakeApi) -> Iterator[Api]:
    """Bob."""
    api = make_api("bob")
    yield api
    api.clean()


@pytest.fixture(scope="module")
def session(alice: Api) -> Json:
    """What alice works in."""
    return alice.running(name="precious1")


@pytest.fixture(scope="module")
def hostile(bob: Api) -> Json:
    """Bob's session, one app of which is a program of his."""
    session = bob.running()
    hostile_app(bob, session["id"])
    return session


@dataclass
class Scene:
    """Alice's browser: her portal, her apps, and bob's page."""

    portal: Page
    lab: Page
    terminal: Page
    evil: Page
    api: Api
    session: str

    @property
    def context(self) -> BrowserContext:
        """All of her browser."""
        return self.portal.context

    @property
    def hers(self) -> list[str]:
        """The origins that are hers."""
        return [_origin(page.url) for page in (self.portal, self.lab, self.terminal)]

    def attempt(self, name: str, *words: Any) -> str:
        """Have bob's page try something; what it saw."""
        call = "([name, words]) => window.attempts[name](...words)"
        return str(self.evil.evaluate(call, [name, list(words)]))

    def unharmed(self) -> None:
        """She is still logged in, her session runs, her apps open, and nothing was launched."""
        self.portal.reload()
        assert (
            self.portal.locator("tr[data-name=precious1]").get_attribute("data-state") == "RUNNING"
        )
        assert [s["id"] for s in self.api.list(state="running")] == [self.session]
        self.lab.reload()
        self.lab.wait_for_selector(
            "#jupyterlab-splash, .jp-LabShell", state="attached", timeout=STARTS
        )
        assert "evil" not in self.lab.title()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _visit(page: Page, api: Api, session: str, app: str) -> Page:
    opened = page.context.new_page()
    opened.goto(api.ask("POST", f"/sessions/{session}/apps/{app}")["url"])
    return opened


@pytest.fixture(scope="module")
def at_work(
    browser: Browser,
    cluster: Cluster,
    cookies: dict[str, StorageState],
    alice: Api,
    session: Json,
) -> Iterator[tuple[Page, Page, Page]]:
    """The pages in which alice works all the time: the portal, JupyterLab and a terminal."""
    with logging_in(browser, cluster, cookies) as log_in:
        portal = log_in("alice")
        lab = _visit(portal, alice, session["id"], "jupyterlab")
        lab.wait_for_selector(".jp-LabShell", state="attached", timeout=STARTS)
        terminal = _visit(portal, alice, session["id"], "terminal")
        terminal.wait_for_selector(".xterm-screen", timeout=STARTS)
        yield portal, lab, terminal


@pytest.fixture
def scene(
    at_work: tuple[Page, Page, Page], alice: Api, bob: Api, session: Json, hostile: Json
) -> Iterator[Scene]:
    """Alice at work, lured to bob's page by a link of his."""
    portal, lab, terminal = at_work
    evil = _visit(portal, bob, hostile["id"], "terminal")
    assert evil.title() == "evil"
    evil.evaluate(SCRIPT)
    yield Scene(portal, lab, terminal, evil, alice, session["id"])
    # Not earlier: closing a window that is just moving to a process of its own may hang.
    for page in portal.context.pages:
        if page not in at_work:
            page.close()


def _addresses(scene: Scene) -> list[str]:
    portal, lab, terminal = scene.hers
    paths = {
        portal: ["/sessions", "/sessions/rows", "/api/v1/sessions", "/api/v1/me", "/login"],
        lab: ["/lab", "/api/contents/", "/api/status", "/.slipway/status"],
        terminal: ["/", "/token", "/.slipway/status"],
    }
    in_ports = scene.api.cluster.mode == "ports"
    label = urlsplit(lab).port if in_ports else urlsplit(lab).netloc.partition(".")[0]
    paths[portal] += [f"/open/{label}", f"/sessions/{scene.session}/log"]
    return [origin + path for origin, found in paths.items() for path in found]


def test_reads_nothing(scene: Scene, control: Control) -> None:
    assert "welcome" in scene.attempt("read", f"{control.url}/page", {})
    for url in _addresses(scene):
        for options in ({}, {"mode": "no-cors"}, {"method": "HEAD"}, {"headers": {"X-Own": "1"}}):
            seen = scene.attempt("read", url, options)
            assert seen in REFUSED, (url, options, seen)


def test_posts_nothing(scene: Scene, control: Control) -> None:
    portal, lab, terminal = scene.hers
    kernels = json.loads(scene.lab.evaluate("fetch('/api/kernels').then((a) => a.text())"))
    fields = {"ids": scene.session, "name": "byBob", "environment": "python", "csrf_token": "x"}
    scene.attempt("post", f"{control.url}/form", fields)
    assert any("/form" in line and scene.session in line for line in control.heard)
    targets = [
        f"{portal}/sessions",
        f"{portal}/sessions/end",
        f"{portal}/sessions/{scene.session}/apps/terminal/open",
        f"{portal}/api/v1/sessions",
        f"{portal}/logout",
        f"{portal}/login",
        f"{lab}/api/kernels",
        f"{lab}/api/contents/",
        f"{terminal}/token",
        f"{lab}/.slipway/enter",
    ]
    for url in targets:
        for kind in ("", "text/plain", "multipart/form-data"):
            seen = scene.attempt("post", url, fields, kind)
            assert not seen.startswith("read") or seen == "read ", (url, seen)
        for options in (
            {"method": "POST", "mode": "no-cors", "body": '{"name":"python3"}'},
            {"method": "PUT", "body": "{}", "headers": {"Content-Type": "application/json"}},
            {"method": "DELETE"},
        ):
            seen = scene.attempt("read", url, options)
            assert seen in REFUSED, (url, options, seen)
    after = json.loads(scene.lab.evaluate("fetch('/api/kernels').then((a) => a.text())"))
    assert len(after) == len(kernels)
    scene.unharmed()


def test_includes_nothing(scene: Scene, control: Control) -> None:
    assert scene.attempt("include", "script", f"{control.url}/x.js") == "loaded"
    for url in _addresses(scene):
        for tag in ("script", "img", "link"):
            seen = scene.attempt("include", tag, url)
            assert seen == "refused", (tag, url)


def test_frames_nothing(scene: Scene, control: Control) -> None:
    scene.attempt("frame", f"{control.url}/framed")
    assert "welcome" in scene.evil.frames[-1].content()
    for url in _addresses(scene):
        seen = scene.attempt("frame", url)
        assert seen in REFUSED, (url, seen)
        # What the frame shows is the browser's own page of refusal, or our refusal in words.
        frame = scene.evil.frames[-1]
        shown = "" if frame.url.startswith("chrome-error:") else frame.content()
        for word in ("jupyter", "xterm", "csrf_token", "precious1", "slipway_app"):
            assert word not in shown, (url, shown[:300])


def test_opens_windows_and_sees_nothing(scene: Scene, control: Control) -> None:
    def opened(url: str) -> str:
        with scene.context.expect_page() as popup:
            scene.evil.evaluate("(url) => { window.victim = window.open(url); }", url)
        popup.value.wait_for_load_state("load")
        return scene.attempt("look")

    own = f"{_origin(scene.evil.url)}/own"
    # Every window begins empty, and may be looked at too early.
    wait_for("a window of its own", lambda: "evil" in opened(own))
    for url in _addresses(scene):
        seen = opened(url)
        # A window that went its own way is empty for who opened it.
        assert seen in REFUSED or seen.startswith("read <html><head></head><body></body>"), (
            url,
            seen,
        )


def test_pages_that_it_was_opened_from_are_out_of_reach(scene: Scene) -> None:
    for page in (scene.portal, scene.lab):
        with scene.context.expect_page() as popup:
            page.evaluate("(url) => { window.open(url); }", f"{_origin(scene.evil.url)}/own")
        popup.value.wait_for_load_state("load")
        seen = popup.value.evaluate(
            "() => { try { return window.opener ? window.opener.document.title : 'no opener'; }"
            " catch (error) { return error.name; } }"
        )
        assert seen in ("no opener", "SecurityError")
        popup.value.close()


def test_opens_no_websocket(scene: Scene, control: Control) -> None:
    assert scene.attempt("socket", control.socket).startswith("open")
    own = _origin(scene.evil.url).replace("http", "ws", 1)
    assert scene.attempt("socket", f"{own}/anything").startswith("open")
    portal, lab, terminal = (origin.replace("http", "ws", 1) for origin in scene.hers)
    for url in (
        f"{terminal}/ws",
        f"{lab}/api/events/subscribe",
        f"{lab}/terminals/websocket/1",
        f"{lab}/.slipway/status",
        f"{portal}/sessions",
    ):
        for protocols in ([], ["tty"]):
            assert scene.attempt("socket", url, protocols) == "refused", url


def test_her_login_stays_hers(scene: Scene) -> None:
    portal, lab, _ = scene.hers
    before = _login(scene.context, portal)
    assert len(before) == 1
    inside = [c["name"] for c in scene.context.cookies(lab) if "slipway_app" in c["name"]]
    assert "slipway" not in scene.evil.evaluate("document.cookie")
    scene.evil.goto(f"{_origin(scene.evil.url)}/plant")
    scene.evil.goto(f"{_origin(scene.evil.url)}/sessions/own")
    scene.evil.evaluate(SCRIPT)
    assert (
        int(scene.attempt("toss", ["slipway", "__Host-slipway", "__Secure-slipway", *inside])) > 0
    )
    tossed = [c for c in scene.context.cookies(portal) if "by-bob" in c["value"]]
    assert not tossed
    assert _login(scene.context, portal) == before
    scene.unharmed()


def _login(context: BrowserContext, portal: str) -> list[str]:
    return [c["value"] for c in context.cookies(portal) if c["name"] in NAMES]


def test_what_reached_him_holds_nothing_of_hers(scene: Scene, bob: Api) -> None:
    """No cookie of ours, no ticket, no address that her browser came from."""
    portal, lab, terminal = scene.hers
    for page in (scene.portal, scene.lab, scene.terminal):
        page.evaluate(
            "(url) => { const a = document.createElement('a'); a.href = url; a.target = '_blank';"
            " document.body.append(a); a.click(); }",
            f"{_origin(scene.evil.url)}/clicked",
        )
    scene.evil.wait_for_timeout(1000)

    def visits() -> list[str] | None:
        seen = json.loads(scene.evil.evaluate("fetch('/seen').then((answer) => answer.text())"))
        return seen if any("/clicked" in head for head in seen) else None

    heads = wait_for("a visit from her pages", visits)
    cookies = scene.context.cookies([portal, lab, terminal])
    secrets = [c["value"] for c in cookies if "slipway" in c["name"]]
    secrets += ["ticket=", "csrf_token"]
    assert len(secrets) >= 5
    for head in heads:
        found = [secret for secret in secrets if secret in head]
        assert not found, head
        assert f"{portal}/" not in head, head


def test_what_he_leaves_in_the_browser_ends_with_his_app(
    scene: Scene, alice: Api, bob: Api, hostile: Json, session: Json
) -> None:
    """Ports are used again: neither caches nor service workers of his wait for her there."""
    origin = _origin(scene.evil.url)
    seen = scene.attempt("worker")
    if alice.cluster.mode == "subdomains":
        assert seen in ("registered", "SecurityError", "TypeError")  # nobody gets that name again
        return
    assert seen in ("SecurityError", "TypeError"), seen
    for path in ("/lab", "/tree", "/", "/api/contents/"):
        scene.evil.goto(origin + path)
        assert "evil" in scene.evil.content()
    scene.evil.evaluate("localStorage.setItem('left', 'by bob')")
    bob.stop(hostile["id"])
    bob.wait_state(hostile["id"], *OVER)
    port = urlsplit(origin).port
    wish = {"preferred_port": port}
    answer = alice.ask("POST", f"/sessions/{session['id']}/apps/jupyterlab", json=wish)
    assert _origin(answer["url"]) != origin, "she has his port"
    assert f"Port {port} was another user's until recently" in answer["notice"]
