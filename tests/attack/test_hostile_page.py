"""A page of bob's in alice's browser while she is logged in and at work: it gains nothing.

Each attempt would succeed without a protection of ours; a server without protections shows that the
attempts themselves work.
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
from tests.slurm.conftest import MakeApi
from tests.support.client import OVER, Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.hostile_app import hostile_app

SCRIPT = (Path(__file__).parent / "hostile.js").read_text()
NAMES = ("slipway", "__Host-slipway")
REFUSED = ("TypeError", "SecurityError", "opaque", "refused")
STARTS = 60_000

pytestmark = pytest.mark.timeout(300)


class Open(BaseHTTPRequestHandler):
    """An unprotected server: what works here but not at the portal, the portal refuses."""

    received: list[str]

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.received.append(f"{self.command} {self.path} {body}")
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
        """Log nothing."""


@dataclass
class Control:
    """The unprotected server."""

    url: str
    socket: str
    received: list[str]


def _hello(connection: ServerConnection) -> None:
    connection.send("hello")


@pytest.fixture(scope="module")
def control() -> Iterator[Control]:
    """The server, over HTTP and WebSocket."""
    Open.received = []
    http = ThreadingHTTPServer(("127.0.0.1", 0), Open)
    sockets: Server = serve(_hello, "127.0.0.1", 0)
    for server in (http, sockets):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    place = sockets.socket.getsockname()
    yield Control(
        f"http://127.0.0.1:{http.server_port}", f"ws://127.0.0.1:{place[1]}/ws", Open.received
    )
    sockets.shutdown()
    http.shutdown()
    http.server_close()


@pytest.fixture(scope="module")
def alice(make_api: MakeApi) -> Iterator[Api]:
    """Alice's API client, to check the effects on her resources."""
    api = make_api("alice")
    yield api
    api.clean()


@pytest.fixture(scope="module")
def bob(make_api: MakeApi) -> Iterator[Api]:
    """Bob's API client."""
    api = make_api("bob")
    yield api
    api.clean()


@pytest.fixture(scope="module")
def session(alice: Api) -> Json:
    """The session that alice works in."""
    return alice.running(name="precious1")


@pytest.fixture(scope="module")
def hostile(bob: Api) -> Json:
    """Bob's session; one of its apps is a hostile program."""
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
    limit: int
    """Its time limit in minutes."""

    @property
    def context(self) -> BrowserContext:
        """Her whole browser context."""
        return self.portal.context

    @property
    def hers(self) -> list[str]:
        """The origins that are hers."""
        return [_origin(page.url) for page in (self.portal, self.lab, self.terminal)]

    def attempt(self, name: str, *words: Any) -> str:
        """Let bob's page try something; the result."""
        call = "([name, words]) => window.attempts[name](...words)"
        return str(self.evil.evaluate(call, [name, list(words)]))

    def unharmed(self) -> None:
        """She is still logged in, her session runs, her apps are open, and nothing was launched."""
        self.portal.reload()
        assert (
            self.portal.locator("tr[data-name=precious1]").get_attribute("data-state") == "RUNNING"
        )
        (running,) = self.api.list(state="running")
        assert (running["id"], running["time_limit"]) == (self.session, self.limit)
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
    """The pages that alice uses all the time: the portal, JupyterLab and a terminal."""
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
    """Alice at work, lured to bob's page by a link."""
    portal, lab, terminal = at_work
    evil = _visit(portal, bob, hostile["id"], "terminal")
    assert evil.title() == "evil"
    evil.evaluate(SCRIPT)
    yield Scene(portal, lab, terminal, evil, alice, session["id"], session["time_limit"])
    # Closed only here: closing a window in mid-navigation may hang.
    for page in portal.context.pages:
        if page not in at_work:
            page.close()


def _addresses(scene: Scene) -> list[str]:
    portal, lab, terminal = scene.hers
    paths = {
        portal: ["/sessions", "/sessions/rows", "/api/v1/sessions", "/api/v1/me", "/login"],
        lab: ["/lab", "/api/contents/", "/api/status", "/.slipway/status", "/.slipway/session"],
        terminal: ["/", "/token", "/.slipway/status"],
    }
    in_ports = scene.api.cluster.mode == "ports"
    label = urlsplit(lab).port if in_ports else urlsplit(lab).netloc.partition(".")[0]
    paths[portal] += ["/login/state", f"/open/{label}", f"/sessions/{scene.session}/log"]
    return [origin + path for origin, found in paths.items() for path in found]


def test_cannot_read_responses(scene: Scene, control: Control) -> None:
    assert "welcome" in scene.attempt("read", f"{control.url}/page", {})
    for url in _addresses(scene):
        for options in ({}, {"mode": "no-cors"}, {"method": "HEAD"}, {"headers": {"X-Own": "1"}}):
            seen = scene.attempt("read", url, options)
            assert seen in REFUSED, (url, options, seen)


def test_cannot_post(scene: Scene, control: Control) -> None:
    portal, lab, terminal = scene.hers
    kernels = json.loads(scene.lab.evaluate("fetch('/api/kernels').then((a) => a.text())"))
    fields = {"ids": scene.session, "name": "byBob", "environment": "python", "csrf_token": "x"}
    scene.attempt("post", f"{control.url}/form", fields)
    assert any("/form" in line and scene.session in line for line in control.received)
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
        f"{lab}/.slipway/session/extend",
        f"{portal}/login/again",
        f"{portal}/account/ssh/keys",
        f"{portal}/sessions/{scene.session}/extend",
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


def test_cannot_include_resources(scene: Scene, control: Control) -> None:
    assert scene.attempt("include", "script", f"{control.url}/x.js") == "loaded"
    for url in _addresses(scene):
        for tag in ("script", "img", "link"):
            seen = scene.attempt("include", tag, url)
            assert seen == "refused", (tag, url)


def test_cannot_frame_pages(scene: Scene, control: Control) -> None:
    scene.attempt("frame", f"{control.url}/framed")
    assert "welcome" in scene.evil.frames[-1].content()
    for url in _addresses(scene):
        seen = scene.attempt("frame", url)
        assert seen in REFUSED, (url, seen)
        # The frame shows the browser's own error page, or the portal's refusal.
        frame = scene.evil.frames[-1]
        shown = "" if frame.url.startswith("chrome-error:") else frame.content()
        for word in ("jupyter", "xterm", "csrf_token", "precious1", "slipway_app"):
            assert word not in shown, (url, shown[:300])


def test_cannot_read_windows_that_it_opens(scene: Scene, control: Control) -> None:
    def opened(url: str) -> str:
        with scene.context.expect_page() as popup:
            scene.evil.evaluate("(url) => { window.victim = window.open(url); }", url)
        popup.value.wait_for_load_state("load")
        return scene.attempt("look")

    own = f"{_origin(scene.evil.url)}/own"
    # Every window begins with an empty page, and could be read too early.
    wait_for("a window of its own", lambda: "evil" in opened(own))
    for url in _addresses(scene):
        seen = opened(url)
        # A window in another browsing context group looks empty to its opener.
        assert seen in REFUSED or seen.startswith("read <html><head></head><body></body>"), (
            url,
            seen,
        )


def test_cannot_reach_its_opener(scene: Scene) -> None:
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


def test_cannot_open_websockets(scene: Scene, control: Control) -> None:
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


def test_cannot_replace_her_login(scene: Scene) -> None:
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


def test_no_secret_reaches_the_hostile_page(scene: Scene, bob: Api) -> None:
    """No portal cookie, no ticket, no referring address of hers."""
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


def test_browser_data_of_his_app_ends_with_it(
    scene: Scene, alice: Api, bob: Api, hostile: Json, session: Json
) -> None:
    """Ports are reused: neither his caches nor his service workers may wait for her there."""
    origin = _origin(scene.evil.url)
    seen = scene.attempt("worker")
    if alice.cluster.mode == "subdomains":
        assert seen in ("registered", "SecurityError", "TypeError")  # the name is never reused
        return
    assert seen in ("SecurityError", "TypeError"), seen
    for path in ("/lab", "/tree", "/", "/api/contents/"):
        scene.evil.goto(origin + path)
        assert "evil" in scene.evil.content()
    scene.evil.evaluate("localStorage.setItem('left', 'by bob')")
    bob.stop(hostile["id"])
    bob.wait_state(hostile["id"], *OVER)
    port = urlsplit(origin).port
    request_body = {"preferred_port": port}
    answer = alice.ask("POST", f"/sessions/{session['id']}/apps/jupyterlab", json=request_body)
    assert _origin(answer["url"]) != origin, "she has his port"
    assert f"Port {port} was another user's until recently" in answer["notice"]
