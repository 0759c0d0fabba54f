"""The gate at an app's own origin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

import pytest
from flask import Flask

from portal.web.app import create_app
from tests.support.fakes import World, make_world
from tests.support.transactions import transactions
from tests.unit.web.conftest import PORTAL, Browser, Runner, make_settings

Launched = Callable[..., Runner]
HTML = {"Accept": "text/html", "Sec-Fetch-Dest": "document"}


def _split(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}", f"{parts.path}?{parts.query}"


def _label(origin: str) -> str:
    parts = urlsplit(origin)
    host = parts.hostname or ""
    return str(parts.port) if host == "127.0.0.1" else host.partition(".")[0]


@pytest.fixture(params=["ports", "subdomains"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A portal in each mode."""
    return make_world(make_settings(tmp_path, apps=request.param))


@pytest.fixture
def runner(launched: Launched) -> Runner:
    """Alice's session."""
    return launched("alice")


@pytest.fixture
def link(alice: Browser, runner: Runner) -> str:
    """The URL of a click on JupyterLab."""
    answer = alice.post(f"/sessions/{runner.session.id}/apps/jupyterlab/open")
    assert answer.status_code == 303
    return answer.headers["Location"]


@pytest.fixture
def inside(app: Flask, link: str) -> Browser:
    """Alice's browser at the app's origin, with its cookie."""
    origin, path = _split(link)
    browser = Browser(app, origin)
    assert browser.get(path, headers=HTML).status_code == 303
    return browser


def test_a_ticket_becomes_a_cookie_of_that_origin(app: Flask, link: str) -> None:
    origin, path = _split(link)
    answer = Browser(app, origin).get(path)
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/lab"
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"slipway_app_{_label(origin)}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Domain" not in cookie
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_ticket_is_valid_once(app: Flask, link: str) -> None:
    origin, path = _split(link)
    assert Browser(app, origin).get(path).status_code == 303
    again = Browser(app, origin).get(path, headers=HTML)
    assert again.status_code == 401
    assert "Open the app again" in again.text


def test_the_same_browser_may_use_its_link_again(inside: Browser, link: str) -> None:
    answer = inside.get(_split(link)[1])
    assert (answer.status_code, answer.headers["Location"]) == (303, "/lab")


def test_a_ticket_is_valid_at_its_origin_only(app: Flask, link: str) -> None:
    origin, path = _split(link)
    own = urlsplit(origin)
    another = "http://another.apps.localhost:8080"
    if own.hostname == "127.0.0.1":
        another = f"http://127.0.0.1:{10199 if own.port != 10199 else 10198}"
    answer = Browser(app, another).get(path)
    assert answer.status_code == 401


def test_a_ticket_expires(world: World, app: Flask, link: str) -> None:
    world.clock.advance(seconds=61)
    origin, path = _split(link)
    assert Browser(app, origin).get(path).status_code == 401


@pytest.mark.parametrize(
    ("target", "goes_to"),
    [
        ("/lab/tree/a.ipynb?x=1", "/lab/tree/a.ipynb?x=1"),
        ("//evil.example.org", "/lab"),
        ("/\\evil.example.org", "/lab"),
        ("https://evil.example.org", "/lab"),
        ("/a\r\nSet-Cookie: x=y", "/lab"),
        ("javascript:alert(1)", "/lab"),
    ],
)
def test_redirects_stay_at_this_origin(app: Flask, link: str, target: str, goes_to: str) -> None:
    origin, path = _split(link)
    query = {"ticket": path.partition("ticket=")[2], "next": target}
    answer = Browser(app, origin).get("/.slipway/enter", query_string=query)
    assert answer.headers["Location"] == goes_to


def test_the_waiting_page_shows_the_progress(inside: Browser, runner: Runner) -> None:
    page = inside.get("/lab", headers=HTML)
    assert page.status_code == 200
    assert 'data-step="queued"' in page.text
    runner.ready()
    assert inside.get("/.slipway/status").json["step"] == "opening"  # type: ignore[index]
    runner("apps/jupyterlab", {"state": "failed", "message": "It broke.", "log": "last <b>lines"})
    failed = inside.get("/lab", headers=HTML)
    assert "It broke." in failed.text
    assert "last &lt;b&gt;lines" in failed.text
    assert f"{PORTAL}/open/" in failed.text


def test_ready_opens_the_route(world: World, inside: Browser, runner: Runner) -> None:
    runner.ready()
    runner("apps/jupyterlab", {"state": "ready"})
    assert len(world.routes.map) == 1
    world.routes.map.clear()  # HAProxy was restarted
    assert inside.get("/.slipway/status").json["step"] == "ready"  # type: ignore[index]
    assert len(world.routes.map) == 1


def test_loading_the_page_restores_a_lost_route(
    world: World, inside: Browser, link: str, runner: Runner
) -> None:
    runner.ready()
    runner("apps/jupyterlab", {"state": "ready"})
    routes = dict(world.routes.map)
    for path in ("/lab", _split(link)[1]):
        world.routes.map.clear()
        inside.get(path, headers=HTML)
        assert world.routes.map == routes, path


def test_a_lost_route_is_restored_once_despite_many_cookies(
    world: World, app: Flask, inside: Browser, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner.ready()
    runner("apps/jupyterlab", {"state": "ready"})
    name, host = f"slipway_app_{_label(inside.base)}", urlsplit(inside.base).hostname or ""
    cookie = inside.client.get_cookie(name, domain=host)
    assert cookie is not None
    added: list[str] = []
    monkeypatch.setattr(world.routes, "add", lambda key, _target: added.append(key))
    planted = "".join(f"{name}={number}; " for number in range(7))
    client = app.test_client(use_cookies=False)
    for number, expected in ((7, "ready"), (8, None)):
        cookies = {"Cookie": f"{planted}{f'{name}=x; ' * (number - 7)}{name}={cookie.value}"}
        with transactions(world) as begun:
            answer = client.get("/.slipway/status", base_url=inside.base, headers=cookies)
        assert "write" not in begun
        assert (answer.json or {}).get("step") == expected
    assert len(added) == 1


def test_a_click_on_a_running_app_takes_four_transactions(
    world: World, app: Flask, alice: Browser, runner: Runner
) -> None:
    """From the form to the app's cookie, login check included.

    The login's last use is stored once a minute, independently of the click.
    """
    place = f"/sessions/{runner.session.id}/apps/jupyterlab/open"
    runner.ready()
    world.clock.advance(minutes=10)
    alice.post(place)
    runner("apps/jupyterlab", {"state": "ready"})
    world.clock.advance(seconds=50)
    fields = {"csrf_token": alice.csrf()}
    with transactions(world) as begun:
        answer = alice.client.post(place, data=fields, base_url=alice.base)
        origin, path = _split(answer.headers["Location"])
        assert Browser(app, origin).get(path).status_code == 303
    assert len(begun) <= 4, begun
    assert len(world.routes.map) == 1


def test_programs_are_told_to_retry(inside: Browser) -> None:
    for method in ("get", "post", "put", "delete"):
        answer = getattr(inside.client, method)("/api/kernels", base_url=inside.base)
        assert answer.status_code == 409
        assert answer.headers["Retry-After"] == "1"


def test_websockets_are_told_to_retry(inside: Browser) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    assert inside.get("/api/events/subscribe", headers=headers).status_code == 409


def test_strangers_are_redirected_to_the_portal(app: Flask, link: str) -> None:
    origin, _ = _split(link)
    stranger = Browser(app, origin)
    answer = stranger.get("/lab/my file?a=b", headers=HTML)
    assert answer.status_code == 303
    again = f"{PORTAL}/open/{_label(origin)}"
    assert answer.headers["Location"].startswith(f"{again}?next=%2Flab%2Fmy%2520file")
    assert stranger.get("/lab").status_code == 401
    assert stranger.get("/lab", headers=HTML | {"Sec-Fetch-Dest": "iframe"}).status_code == 401
    assert stranger.get("/.slipway/status").status_code == 401


def test_only_the_owner_returns_with_a_ticket(
    app: Flask, alice: Browser, bob: Browser, link: str
) -> None:
    label = _label(link)
    answer = alice.get(f"/open/{label}?next=/lab/tree")
    origin, path = _split(answer.headers["Location"])
    assert Browser(app, origin).get(path).headers["Location"] == "/lab/tree"
    assert bob.get(f"/open/{label}").status_code == 404
    assert alice.get("/open/nothing").status_code == 404
    fetched = alice.get(f"/open/{label}", headers={"Sec-Fetch-Mode": "cors"})
    assert fetched.status_code == 404


@pytest.mark.parametrize(
    "address",
    [
        "/deep/a%2Fb%20c/%C3%A9?x=1&y=%26z%2F+q",
        "/%ff/x",
        "/%FF%fe?%00=%0A",
        "/tree?filter[]=a|b&c={d}^`e\\f'",
        "/two//slashes/?",
        "/line%0Abreak%0D%0A",
        "/semi;colon=1/(x)!$&*,~@:?",
        f"/long?{'x=%C3%A9&' * 80}",
    ],
)
def test_an_address_goes_through_the_log_in_byte_for_byte(
    app: Flask, link: str, runner: Runner, address: str
) -> None:
    """From the app's origin to the log-in, and by a ticket back to the app."""
    origin, _ = _split(link)
    path = unquote_to_bytes(address.partition("?")[0]).decode("latin-1")
    sent = {"headers": HTML, "environ_overrides": {"RAW_URI": address, "PATH_INFO": path}}
    outside = Browser(app, origin).get("/", **sent)
    portal = Browser(app)
    login = portal.get(outside.headers["Location"].removeprefix(PORTAL))
    query = parse_qs(urlsplit(login.headers["Location"]).query)
    again = portal.post(
        "/login", {"username": "alice", "password": "wonderland", "next": query["next"][0]}
    )
    ticket = portal.get(again.headers["Location"]).headers["Location"]
    inside = Browser(app, origin).get(ticket.removeprefix(origin))
    assert inside.headers["Location"] == address


def test_a_path_that_seems_to_name_a_host_leads_to_the_start_page(
    app: Flask, link: str, runner: Runner
) -> None:
    origin, _ = _split(link)
    sent = {"RAW_URI": "//example.org/x", "PATH_INFO": "//example.org/x"}
    outside = Browser(app, origin).get("/", headers=HTML, environ_overrides=sent)
    assert outside.headers["Location"].startswith(f"{PORTAL}/open/")
    portal = Browser(app).log_in("alice")
    ticket = portal.get(outside.headers["Location"].removeprefix(PORTAL)).headers["Location"]
    inside = Browser(app, origin).get(ticket.removeprefix(origin))
    assert inside.headers["Location"] == "/lab"


def test_logging_out_closes_the_apps(
    world: World, alice: Browser, inside: Browser, runner: Runner
) -> None:
    runner.ready()
    runner("apps/jupyterlab", {"state": "ready"})
    alice.post("/logout")
    assert world.routes.map == {}
    assert inside.get("/.slipway/status").status_code == 401


def test_the_gate_knows_no_login(alice: Browser, inside: Browser) -> None:
    for path in ("/login", "/sessions", "/api/v1/me", "/healthz", "/open/x"):
        assert inside.get(path).status_code == 409  # the app's own paths, not the portal's
    assert inside.client.get_cookie("slipway", domain="localhost") is None


def test_other_names_are_refused(app: Flask) -> None:
    for host in (
        "http://evil.example.org",
        "http://a.b.localhost:8080",
        "http://a.b.apps.localhost:8080",
        "http://apps.localhost:8080",
        "http://localhost.evil.org",
        "http://127.0.0.1",
        "http://127.0.0.1:9999",
        "http://127.0.0.1:10200",
        "http://127.0.0.1.evil.org:10000",
    ):
        assert Browser(app, host).get("/").status_code == 421


def test_a_planted_cookie_does_no_harm(inside: Browser, app: Flask) -> None:
    # A page on another port can plant one for a deeper path, which browsers send first.
    name, host = f"slipway_app_{_label(inside.base)}", urlsplit(inside.base).hostname or ""
    cookie = inside.client.get_cookie(name, domain=host)
    assert cookie is not None
    answer = app.test_client(use_cookies=False).get(
        "/.slipway/status",
        base_url=inside.base,
        headers={"Cookie": f"{name}=planted; {name}={cookie.value}"},
    )
    assert answer.json is not None
    assert answer.json["step"] == "queued"


def test_data_of_a_ports_previous_app_is_cleared_once(
    app: Flask, alice: Browser, runner: Runner, link: str
) -> None:
    """H1: storage of an origin's previous use is cleared; storage of the same use stays."""
    port = _label(link)
    origin, path = _split(link)
    browser = Browser(app, origin)
    assert "Clear-Site-Data" not in browser.get(path).headers
    if not port.isdigit():  # a name is never reused
        return
    place = f"/sessions/{runner.session.id}/apps/jupyterlab/open"
    free = "10009" if port != "10009" else "10007"
    moved = alice.post(place, {"preferred_port": free}, follow_redirects=False)
    assert free in moved.headers["Location"]
    board = f"/sessions/{runner.session.id}/apps/board/open"
    another = alice.post(board, {"preferred_port": port}).headers["Location"]
    answer = browser.get(_split(another)[1])
    assert answer.headers["Clear-Site-Data"] == '"cache", "storage"'
    seen = next(one for one in answer.headers.getlist("Set-Cookie") if "_seen_" in one)
    assert "HttpOnly" in seen
    assert "Path=/.slipway/enter" in seen
    again = alice.post(board).headers["Location"]
    answer = browser.get(_split(again)[1])
    assert answer.status_code == 303
    assert "Clear-Site-Data" not in answer.headers


def test_head_does_not_use_up_a_ticket(app: Flask, link: str) -> None:
    """E36: HEAD, as sent by chats and mail programs."""
    origin, path = _split(link)
    browser = Browser(app, origin)
    looked = browser.client.head(path, base_url=origin)
    assert (looked.status_code, looked.headers.getlist("Set-Cookie")) == (405, [])
    assert browser.get(path).status_code == 303


def test_a_missing_ticket_is_reported(app: Flask, link: str) -> None:
    """E36."""
    origin, _ = _split(link)
    for query in ("", "?ticket="):
        answer = Browser(app, origin).get(f"/.slipway/enter{query}", headers=HTML)
        assert answer.status_code == 401
        assert "The ticket is missing" in answer.text


def test_a_browser_with_access_keeps_its_cookie(
    inside: Browser, alice: Browser, runner: Runner
) -> None:
    """L10: repeated clicks create no further grants."""
    again = alice.post(f"/sessions/{runner.session.id}/apps/jupyterlab/open").headers["Location"]
    answer = inside.get(_split(again)[1], headers=HTML)
    assert (answer.status_code, answer.headers.getlist("Set-Cookie")) == (303, [])
    assert inside.get("/.slipway/status").status_code == 200


@pytest.mark.parametrize("own", [False, True])
def test_pages_here_have_the_sites_name_and_no_mark_beside_its_logo(
    own: bool, tmp_path: Path
) -> None:
    web = {"site_name": "Example HPC"} | ({"logo": "/etc/slipway/logo.svg"} if own else {})
    app = create_app(make_world(make_settings(tmp_path, **web)).services)
    page = Browser(app, "http://127.0.0.1:10000").get("/.slipway/nowhere", headers=HTML).text
    assert "<span>Example HPC</span>" in page
    assert ("<svg" in page) is not own
