"""What an app receives: no secrets of the portal, and no identity forged by a client."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
import requests
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.apps import Kernel
from tests.support.client import LOOPBACK, Api, Browser, Visitor, http_session, port_of
from tests.support.cluster import Cluster, tls
from tests.support.hostile_app import hostile_app

FORGED = (
    "X-Forwarded-User",
    "X_Forwarded_User",
    "X-Forwarded-Email",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-Port",
    "X_Forwarded_For",
    "Forwarded",
    "Remote-User",
    "Remote_User",
    "REMOTE-USER",
    "X-Remote-User",
    "X-Auth-Request-User",
    "X-Real-IP",
    "X-Slipway-Frontend",
    "X-Slipway-Label",
    "X_Slipway_User",
)


@dataclass
class Echo:
    """A browser at an app that records its requests, and the secrets that must not reach it."""

    visitor: Visitor
    kernel: Kernel
    secrets: dict[str, str]

    @property
    def origin(self) -> str:
        """The app's own origin."""
        return self.visitor.origin

    def by_http(self, headers: dict[str, str]) -> str:
        """Send a request; the head that reached the app."""
        return self._received(lambda: self._http(headers))

    def by_websocket(self, headers: dict[str, str]) -> str:
        """Open a WebSocket; the head that reached the app."""
        return self._received(lambda: self.websocket({"Origin": self.origin, **headers}))

    def _received(self, send: Callable[[], None]) -> str:
        before = self._seen()
        send()
        (head,) = self._seen()[len(before) :]
        return head

    def _seen(self) -> list[str]:
        found: list[str] = self.kernel.value("print(json.dumps(SEEN))")
        return found

    def _http(self, headers: dict[str, str]) -> None:
        # A client of its own: it sends exactly the cookies of the headers.
        answer = http_session().get(f"{self.origin}/echo", headers=headers, timeout=10)
        assert "evil" in answer.text

    def websocket(self, headers: dict[str, str]) -> None:
        """Open a WebSocket with exactly these headers."""
        place = urlsplit(self.origin)
        extra = {name: value for name, value in headers.items() if value}
        with connect(
            self.origin.replace("http", "ws", 1) + "/echo",
            sock=socket.create_connection((LOOPBACK, port_of(self.origin)), 10),
            ssl=tls() if place.scheme == "https" else None,
            additional_headers=extra,
            proxy=None,
        ) as stream:
            assert stream.recv(timeout=10) == "hello"

    @property
    def key(self) -> str:
        """The cookie that opens the app, as sent."""
        (found,) = [c for c in self.visitor.http.cookies if "slipway_app" in c.name]
        return f"{found.name}={found.value}"


@pytest.fixture(scope="module")
def echo(researcher: Api, session: dict[str, str], cluster: Cluster) -> Iterator[Echo]:
    """The recording app."""
    kernel, visitor = hostile_app(researcher, session["id"])
    browser = Browser(cluster, "alice")
    secrets = {f"login {c.name}": str(c.value) for c in browser.http.cookies}
    secrets["token"] = str(researcher.http.headers["Authorization"]).split()[1]
    found = Echo(visitor, kernel, secrets)
    secrets["app"] = found.key.partition("=")[2]
    yield found
    kernel.run("restore('terminal')")
    kernel.close()


def _cookies(echo: Echo) -> list[str]:
    """Every way to write cookies that a browser or a page could use."""
    key, login = echo.key, next(v for k, v in echo.secrets.items() if k.startswith("login"))
    name = key.partition("=")[0]
    return [
        f"{key}; slipway={login}; own=1",
        f"slipway={login}; own=1; {key}",
        f"own=1;slipway={login};{key}",
        f"own=1; {key}; slipway={login}; {name}_2={login}; slipway_app_10001={login}",
        f"__Host-slipway={login}; {key}; own=1; __Host-slipway_app_7={login}",
        f"{key}; slipway = {login}; own=1; slipway_={login}",
        f"{key};  slipway={login} ;\tslipway={login}; own=1",
    ]


@pytest.mark.parametrize("way", ["http", "websocket"])
def test_no_cookie_or_token_of_ours_reaches_an_app(echo: Echo, way: str) -> None:
    send = echo.by_http if way == "http" else echo.by_websocket
    for cookies in _cookies(echo):
        head = send({"Cookie": cookies, "Authorization": f"Bearer {echo.secrets['token']}"})
        assert [name for name, secret in echo.secrets.items() if secret in head] == [], cookies
        assert "own=1" in head, cookies
    own = "Basic dXNlcjpwYXNzd29yZA=="
    assert own in send({"Cookie": echo.key, "Authorization": own}), "an app's own token may pass"


@pytest.mark.parametrize("way", ["http", "websocket"])
def test_forged_client_headers_are_dropped(echo: Echo, way: str) -> None:
    send = echo.by_http if way == "http" else echo.by_websocket
    value = "forged-by-client"
    for name in FORGED:
        head = send({"Cookie": echo.key, name: value})
        assert value not in head, head
    received = {
        line.partition(":")[0].lower(): line.partition(":")[2].strip()
        for line in send({"Cookie": echo.key}).splitlines()[1:]
    }
    assert received["host"] == urlsplit(echo.origin).netloc
    assert "x-forwarded-host" not in received, "Host has it already"
    assert received["x-forwarded-proto"] == urlsplit(echo.origin).scheme


def _foreign(own: str) -> list[str]:
    """Origins that resemble the app's own."""
    parts = urlsplit(own)
    host, port, http = parts.hostname or "", parts.port or 0, parts.scheme
    other = "http" if http == "https" else "https"
    return [
        "",  # no Origin at all, although the cookie is sent
        "null",
        f"{other}://{host}:{port}",
        f"{http}://{host}",
        f"{http}://{host}:{port + 1}",
        f"{http}://{host}:80",
        f"{http}://{host}.evil.example.org:{port}",
        f"{http}://evil{host}:{port}",
        f"{http}://x.{host}:{port}",
        f"{http}://{host}:{port}0",
        f"{http}://{host}:{port}@evil.example.org",
        f"{own}/",
        f"{own}, {http}://evil.example.org",
        f"{http}://localhost:{port}",
        "http://evil.example.org",
    ]


def test_websockets_are_accepted_from_the_apps_own_origin_only(echo: Echo) -> None:
    echo.websocket({"Origin": echo.origin, "Cookie": echo.key})
    for origin in _foreign(echo.origin):
        with pytest.raises(InvalidStatus) as refused:
            echo.websocket({"Origin": origin, "Cookie": echo.key})
        assert refused.value.response.status_code == 403, origin
    with pytest.raises(InvalidStatus) as refused:
        echo.websocket({"Origin": echo.origin})
    assert refused.value.response.status_code in (401, 403)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_requests_of_other_sites_change_nothing(echo: Echo, method: str) -> None:
    def status(headers: dict[str, str]) -> int:
        client: requests.Session = http_session()
        headers["Cookie"] = echo.key
        return client.request(method, f"{echo.origin}/x", headers=headers, timeout=10).status_code

    assert status({"Origin": echo.origin}) == 200
    for origin in _foreign(echo.origin)[1:]:
        assert status({"Origin": origin}) == 403, origin
