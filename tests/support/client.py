"""Clients of a running portal: API programs with tokens, and browsers at the apps' own origins."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.cookies import get_cookie_header
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from tests.support.cluster import Cluster, authority, healthy, tls, wait_for

Json = dict[str, Any]
LOOPBACK = "127.0.0.1"
SMALL: Json = {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}
NO_GPU: Json = {"fgpu": None, "gpu": None}
OVER = ("FINISHED", "FAILED")
TIMEOUT = 30.0
TOO_FAST = "Too many requests come from you or your address"


def port_of(url: str) -> int:
    """The port of a URL; the scheme's default if it names none."""
    parts = urlsplit(url)
    return parts.port or {"http": 80, "https": 443}[parts.scheme]


class ToLoopback(HTTPAdapter):
    """Connect *.localhost to the loopback address, as browsers do, with the name in the Host."""

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: Any, cert: Any = None
    ) -> Any:
        """Connect to this machine, whatever the host name."""
        host, pool = super().build_connection_pool_key_attributes(request, verify, cert)
        name = host["host"]
        names = {"server_hostname": name, "assert_hostname": name}
        return {**host, "host": LOOPBACK}, {**pool, **(names if host["scheme"] == "https" else {})}

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Send with the URL's name in the Host header."""
        request.headers["Host"] = urlsplit(str(request.url)).netloc
        return super().send(request, *args, **kwargs)


def http_session() -> requests.Session:
    """A requests session that reaches the portal and its apps by their names."""
    session = requests.Session()
    session.trust_env = False
    session.verify = authority() or True
    for scheme in ("http://", "https://"):
        session.mount(scheme, ToLoopback(pool_maxsize=64))
    return session


class Api:
    """An API client with a user's token; remembers what it launched."""

    def __init__(self, cluster: Cluster, user: str, token: str | None = None) -> None:
        self.cluster = cluster
        self.user = user
        self.http = http_session()
        self.launched: list[str] = []
        if token is not None:
            self.http.headers["Authorization"] = f"Bearer {token}"

    def __call__(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send an API request; on a machine faster than the limit per address, wait as told."""
        options.setdefault("timeout", TIMEOUT)
        url = f"{self.cluster.url}/api/v1{path}"
        answer = self.http.request(method, url, **options)
        if answer.status_code == 429 and TOO_FAST in answer.text:
            time.sleep(float(answer.headers["Retry-After"]))
            answer = self.http.request(method, url, **options)
        return answer

    def ask(self, method: str, path: str, status: int = 200, **options: Any) -> Json:
        """Send an API request that must succeed, and return its JSON."""
        response = self(method, path, **options)
        assert response.status_code == status, f"{response.status_code}: {response.text}"
        answer: Json = response.json()
        return answer

    def launch(self, key: str | None = None, **changes: Any) -> Json:
        """Launch a small session, or one with changes, and return it."""
        headers = {"Idempotency-Key": key} if key else {}
        body = SMALL | changes
        answer = self.ask("POST", "/sessions", 201, json=body, headers=headers)
        session: Json = answer["sessions"][0]
        self.launched.append(session["id"])
        return session

    def launch_all(self, **changes: Any) -> list[Json]:
        """Launch several small sessions at once, and wait until Slurm has their jobs."""
        answer = self.ask("POST", "/sessions", 201, json=SMALL | changes)
        sessions: list[Json] = answer["sessions"]
        self.launched += [session["id"] for session in sessions]
        self.wait_submitted(sessions)
        return sessions

    def wait_submitted(self, sessions: Sequence[Json]) -> None:
        """Wait until Slurm has the jobs of sessions."""

        def submitted() -> bool:
            return all(self.get(session["id"])["job_id"] for session in sessions)

        wait_for("Slurm has their jobs", submitted, 60)

    def get(self, session: str) -> Json:
        """One session."""
        return self.ask("GET", f"/sessions/{session}")

    def list(self, **query: Any) -> list[Json]:
        """Sessions, newest first, up to the page limit."""
        found: list[Json] = self.ask("GET", "/sessions", params={"limit": 500} | query)["sessions"]
        return found

    def stop(self, session: str) -> Json:
        """End a session."""
        return self.ask("DELETE", f"/sessions/{session}", 202)

    def wait_state(self, session: str, *states: str, seconds: float = 40) -> Json:
        """Wait until a session is in one of the states."""

        def there() -> Json | None:
            now = self.get(session)
            assert now["state"] in states or now["state"] not in OVER, now
            return now if now["state"] in states else None

        return wait_for(f"{session} {' or '.join(states)}", there, seconds)

    def running(self, **changes: Any) -> Json:
        """Launch a session and wait until it runs."""
        return self.wait_state(self.launch(**changes)["id"], "RUNNING")

    def clean_all(self) -> None:
        """Clean up, including what the same user has launched in the pages."""
        self.launched += [session["id"] for session in self.list(state="running")]
        self.clean()

    def clean(self) -> None:
        """End everything launched here, and wait until Slurm has its cores back."""
        wait_for("the portal", lambda: healthy(self.cluster), 60)
        for session in self.launched:
            self.stop(session)
        for session in self.launched:
            self.wait_state(session, *OVER)
        self.launched.clear()

    def forget_folders(self) -> None:
        """Have a last session without folders, so that the wizard proposes none."""
        if any(session["mounts"] for session in self.list(limit=1)):
            self.stop(self.launch()["id"])

    def open(self, session: str, app: str) -> Visitor:
        """Open an app as a browser would, and wait until it answers."""
        link = self.ask("POST", f"/sessions/{session}/apps/{app}")
        visitor = Visitor(link["url"])
        visitor.enter()
        return visitor


def login(cluster: Cluster, user: str) -> str:
    """Exchange the password for a token."""
    body = {"username": user, "password": cluster.password(user)}
    token: str = Api(cluster, user).ask("POST", "/tokens", 201, json=body)["token"]
    return token


class Visitor:
    """A browser with its own cookies at one app's origin."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.link = url
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.http = http_session()

    def enter(self, seconds: float = 60) -> None:
        """Exchange the ticket for the cookie, and wait until the app itself answers."""
        self.http.get(self.link, timeout=TIMEOUT)
        wait_for(f"an app at {self.origin}", self.inside, seconds)

    def inside(self) -> bool:
        """Whether requests reach the app and not the waiting page."""
        step = self.get("/.slipway/status").json().get("step")
        assert step not in ("failed", "over"), self.get("/.slipway/status").text
        # Tells the app's responses from the gate's error pages.
        return step == "ready" and self.get("/", allow_redirects=False).status_code < 400

    def copy(self) -> Visitor:
        """The same browser with connections of its own, for another thread."""
        found = Visitor(f"{self.origin}/")
        found.http.cookies.update(self.http.cookies)
        return found

    def get(self, path: str, **options: Any) -> requests.Response:
        """Load a path."""
        options.setdefault("timeout", TIMEOUT)
        return self.http.get(self.origin + path, **options)

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request, as a script of the app's page does."""
        options.setdefault("timeout", TIMEOUT)
        headers = {"Origin": self.origin, "X-XSRFToken": self.http.cookies.get("_xsrf", "")}
        return self.http.request(method, self.origin + path, headers=headers, **options)

    @property
    def cookie_name(self) -> str:
        """The name of the app's cookie; "" without one."""
        ours = [name for name in self.http.cookies.get_dict() if "slipway_app_" in name]
        return ours[0] if ours else ""

    @property
    def cookie(self) -> str:
        """The value of the app's cookie; "" without one."""
        return self.http.cookies.get(self.cookie_name) or ""

    def websocket(
        self, path: str, subprotocol: str | None = None, origin: str | None = None
    ) -> ClientConnection:
        """Open a WebSocket, as a script of the app's page does."""
        place = urlsplit(self.origin)
        request = requests.Request("GET", self.origin + path).prepare()
        cookies = get_cookie_header(self.http.cookies, request)  # type: ignore[no-untyped-call]
        headers = {"Cookie": cookies} if cookies else {}
        if token := self.http.headers.get("Authorization"):
            headers["Authorization"] = str(token)
        opening = connect(
            self.origin.replace("http", "ws", 1) + path,
            sock=socket.create_connection((LOOPBACK, port_of(self.origin)), TIMEOUT),
            ssl=tls() if place.scheme == "https" else None,
            origin=Origin(origin or self.origin),
            additional_headers=headers,
            subprotocols=[Subprotocol(subprotocol)] if subprotocol else None,
            max_size=None,
            proxy=None,
            open_timeout=TIMEOUT,
            ping_interval=None,  # browsers send none
        )
        return opening.__enter__()  # the caller closes it


class Browser:
    """A user's browser at the portal's pages."""

    def __init__(self, cluster: Cluster, user: str) -> None:
        self.cluster = cluster
        self.http = http_session()
        self.post("/login", {"username": user, "password": cluster.password(user)})
        assert self.get("/sessions").url.endswith("/sessions"), "not logged in"

    def get(self, path: str, **options: Any) -> requests.Response:
        """Load a page."""
        options.setdefault("timeout", TIMEOUT)
        return self.http.get(self.cluster.url + path, **options)

    def post(self, path: str, data: Json | None = None, **options: Any) -> requests.Response:
        """Submit a form with the page's CSRF token."""
        page = self.get("/login").text
        found = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)
        assert found, page
        fields = {"csrf_token": found[1]} | (data or {})
        headers = {"Referer": self.cluster.url + path} | options.pop("headers", {})
        address = self.cluster.url + path
        return self.http.post(address, fields, headers=headers, timeout=TIMEOUT, **options)


def unanswered(ask: Callable[[], requests.Response]) -> str | None:
    """Why a request that must succeed failed; None if it succeeded."""
    try:
        response = ask()
    except requests.RequestException as error:
        return repr(error)
    return None if response.status_code == 200 else f"{response.status_code}: {response.text[:200]}"


TINY: Json = {"resources": {"cpus": 1, "memory": "300m"}}
