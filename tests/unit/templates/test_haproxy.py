"""The rendered HAProxy configuration in a real HAProxy: which requests pass, and their headers."""

from __future__ import annotations

import http.client
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.web.front import (
    COOKIE,
    SESSION,
    Answer,
    Front,
    make_settings,
    read,
    render,
    running_front,
)

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")


@pytest.fixture(scope="module", params=["ports", "subdomains"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """One HAProxy for all tests here, in each mode."""
    with running_front(tmp_path_factory.mktemp("front"), request.param) as running:
        yield running


@pytest.fixture
def route(front: Front) -> Iterator[str]:
    """Add the app's route."""
    front.routes.add(front.key, front.target)
    yield front.target
    front.routes.remove(front.key)


@pytest.mark.parametrize("threads", range(4, 9))
def test_each_kind_of_request_has_a_limit_with_one_process(tmp_path: Path, threads: int) -> None:
    """0 would mean any number."""
    rendered = render(make_settings(tmp_path, workers=1, threads=threads))
    limits = re.findall(r"^  server .* maxconn (\S+)$", rendered, re.MULTILINE)
    assert len(limits) > 6
    assert all(int(limit) > 0 for limit in limits)


def test_the_portals_host_leads_to_the_portal(front: Front) -> None:
    answer = front.ask(f"localhost:{front.port}", "/sessions", X_Slipway_Frontend="runners",
                       X_Forwarded_For="6.6.6.6", X_Forwarded_User="root", Forwarded="for=x",
                       Remote_User="root")  # fmt: skip
    assert answer.seen["who"] == "portal"
    assert answer.sent("x-slipway-frontend") == []
    assert answer.sent("x-forwarded-user") == []
    assert answer.sent("remote-user") == []
    assert answer.sent("forwarded") == []
    assert answer.sent("x-forwarded-for") == ["127.0.0.1"]


@pytest.mark.parametrize(
    "host", ["evil.example.org", "localhost.evil.org", "a.b.apps.localhost", "a.localhost", ""]
)
def test_other_hosts_lead_nowhere(front: Front, host: str) -> None:
    assert front.ask(host).status in (400, 404)


def test_the_address_by_number_leads_to_the_right_name(front: Front) -> None:
    answer = front.ask(f"127.0.0.1:{front.port}", "/sessions")
    assert answer.status == 301
    assert answer.headers["Location"] == f"http://localhost:{front.port}/sessions"
    health = front.ask(f"127.0.0.1:{front.port}", "/healthz")
    assert health.sent("host") == ["localhost"]


def test_callbacks_are_accepted_on_their_own_port_only(front: Front) -> None:
    assert front.ask(f"localhost:{front.port}", "/runner/v1/sessions/x/ready").status == 404
    context = ssl.create_default_context(cafile=str(front.ca / "gateway_ca.pem"))

    def call(path: str) -> Answer:
        connection = http.client.HTTPSConnection("portal", front.runners_port, context=context)
        plain = socket.create_connection(("127.0.0.1", front.runners_port))
        connection.sock = context.wrap_socket(plain, server_hostname="portal")
        connection.request("GET", path)
        return read(connection)

    assert call("/runner/v1/x").sent("x-slipway-frontend") == ["runners"]
    assert call("/sessions").status == 404


def test_a_valid_cookie_leads_to_the_app(front: Front, route: str) -> None:
    answer = front.app("/lab?a=1")
    assert (answer.seen["who"], answer.seen["path"]) == ("app", "/lab?a=1")
    assert front.gateway.names[-1] == f"jupyterlab.{SESSION}.slipway"


def test_no_secret_reaches_the_app(front: Front, route: str) -> None:
    ours = f"{front.cookie}; slipway=portal; slipway_app_1=x; __Host-slipway=p; __Secure-slipway_x"
    jar = f"theme=dark; {ours}; _xsrf=2|x; z=1"
    answer = front.app(cookie=jar, X_Forwarded_User="root", X_Real_IP="6.6.6.6")
    assert answer.sent("cookie") == ["theme=dark; _xsrf=2|x; z=1"]
    assert answer.sent("x-forwarded-user") == []
    assert answer.sent("x-real-ip") == []
    assert COOKIE not in answer.text
    first = front.app(cookie=f"{front.cookie}; theme=dark")
    assert first.sent("cookie") == ["theme=dark"]
    assert front.app().sent("cookie") == []


def test_disguised_header_names_are_dropped(front: Front, route: str) -> None:
    host = front.origin.removeprefix("http://")
    headers = [("Cookie", front.cookie), ("X_Forwarded_User", "root")]
    answer = front.raw(host, "/", "GET", "", headers, front.app_port)
    assert answer.seen["who"] == "app"
    assert "root" not in answer.text


def test_tokens_of_the_portal_are_kept_from_apps(front: Front, route: str) -> None:
    assert front.app(authorization="Bearer slipway_abc").sent("authorization") == []
    assert front.app(authorization="token own").sent("authorization") == ["token own"]


def test_an_app_cannot_plant_our_cookie(front: Front, route: str) -> None:
    cookies = front.app().headers.get_all("Set-Cookie") or []
    assert not any("planted" in cookie or "omain" in cookie for cookie in cookies)
    assert any(cookie.startswith("own=1") for cookie in cookies)


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "{name}=wrong",
        "{name}=",
        f"other={COOKIE}",
        f"slipway_app={COOKIE}",
        f"slipway_app_1={COOKIE}",
        f"x{{name}}={COOKIE}",
        f"{{name}}={COOKIE}x",
        f"{{name}}={COOKIE}; {{name}}=planted",
    ],
)
def test_without_a_valid_cookie_the_portal_responds(front: Front, route: str, cookie: str) -> None:
    name = front.web.app_cookie(front.label)
    assert front.app(cookie=cookie.format(name=name)).seen["who"] == "portal"


def test_a_cookie_planted_for_a_deeper_path_does_no_harm(front: Front, route: str) -> None:
    # Browsers send it first.
    name = front.web.app_cookie(front.label)
    assert front.app(cookie=f"{name}=planted; a=1; {front.cookie}").seen["who"] == "app"


def test_a_cookie_is_valid_at_one_origin_only(front: Front, route: str) -> None:
    if front.web.apps == "ports":
        port = front.app_port + 1
        host = f"127.0.0.1:{port}"
    else:
        port, host = front.port, f"other.apps.localhost:{front.port}"
    name = front.web.app_cookie(host.split(".", maxsplit=1)[0] if port == front.port else str(port))
    for cookie in (front.cookie, f"{name}={COOKIE}"):
        answer = front.raw(host, "/", "GET", "", [("Cookie", cookie)], port)
        assert answer.seen["who"] == "portal"


def test_our_own_pages_at_the_apps_origin(front: Front, route: str) -> None:
    answer = front.app("/.slipway/status")
    assert answer.seen["who"] == "portal"
    assert answer.sent("cookie") == [front.cookie]


def test_a_removed_route_is_closed_at_once(front: Front, route: str) -> None:
    assert front.app().seen["who"] == "app"
    front.routes.remove(front.key)
    assert front.app().seen["who"] == "portal"


def test_only_the_right_gateway_is_trusted(front: Front, route: str) -> None:
    stranger = f"jupyterlab.{'f' * 32}.slipway"
    front.routes.add(front.key, f"127.0.0.1@{front.gateway.server_port}@{stranger}")
    answer = front.app()
    assert answer.status == 503
    assert "does not answer" in answer.text


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize(
    ("origin", "passes"),
    [
        ("{own}", True),
        ("{own}0", False),
        ("http://127.0.0.1:1", False),
        ("https://{own}", False),
        ("http://localhost:{port}", False),
        ("{own}.evil.org", False),
        ("null", False),
        (None, False),
    ],
)
def test_origins(front: Front, route: str, method: str, origin: str | None, passes: bool) -> None:
    headers = {}
    if method == "GET":
        headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
        headers |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version": "13"}
    if origin is not None:
        headers["Origin"] = origin.format(own=front.origin, port=front.port)
    # A POST without an Origin is not from a browser; a WebSocket without one is refused all the
    # same.
    expected = passes or (origin is None and method == "POST")
    assert (front.app(method=method, **headers).status == 200) is expected


def test_apps_keep_working_while_the_portal_restarts(tmp_path: Path) -> None:
    with running_front(tmp_path) as front:
        front.routes.add(front.key, front.target)
        front.portal.shutdown()
        front.portal.server_close()
        (tmp_path / "portal.sock").unlink()
        assert front.app().seen["who"] == "app"
        page = front.ask(f"localhost:{front.port}", "/sessions")
        assert page.status == 503
        assert "The portal does not answer" in page.text
        program = front.ask(f"localhost:{front.port}", "/api/v1/sessions")
        assert program.status == 503
        assert program.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "web",
    [
        {},
        {"apps": "subdomains"},
        {"public_url": "https://slipway.example.org", "apps": "subdomains",
         "apps_domain": "apps.example.org", "tls_certificate": "{ca}/server.pem"},
        {"public_url": "https://slipway.example.org", "apps_host": "apps.example.org",
         "tls_certificate": "{ca}/server.pem"},
    ],
)  # fmt: skip
def test_haproxy_accepts_the_configuration_without_a_warning(
    front: Front, tmp_path: Path, web: dict[str, Any]
) -> None:
    shutil.copytree(front.ca, tmp_path / "ca")
    for name in ("routes.map", "background.map"):
        (tmp_path / name).touch()
    filled = {key: value.format(ca=front.ca) for key, value in web.items()}
    (tmp_path / "haproxy.cfg").write_text(render(make_settings(tmp_path, **filled)))
    command = ["haproxy", "-c", "-f", str(tmp_path / "haproxy.cfg")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
