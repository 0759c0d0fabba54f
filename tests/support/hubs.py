"""A cluster's JupyterHub as seen by the tests: its REST API, its servers, and its process."""

from __future__ import annotations

import http.client
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from websockets.sync.client import ClientConnection

from tests.support.client import LOOPBACK, TIMEOUT, Api, Json, Visitor, http_session
from tests.support.cluster import Cluster, wait_for

SERVER: Json = {
    "environment": "python",
    "version": "3.13",
    "resources": {"cpus": 1, "memory": "500m"},
}
"""What a small server is started with: an image that has jupyterhub-singleuser."""
STARTS = 60.0
"""Seconds until a server runs, on a busy machine."""
SEEN = 30.0
"""Seconds until JupyterHub knows that a server has ended without it, on a busy machine."""
LOOK = 0.5
"""Seconds between two looks."""
BACK = 60.0
"""Seconds until JupyterHub answers after a start."""
XSRF = re.compile(r'name="_xsrf"[^>]*value="([^"]*)"')


def sized(cpus: int = 1, memory: str = "500m", **more: Any) -> Json:
    """The options of a server with these resources."""
    return SERVER | {"resources": {"cpus": cpus, "memory": memory}} | more


def path_of(user: str, name: str = "") -> str:
    """The path of a user's server."""
    return f"/user/{quote(user)}/{quote(name)}/" if name else f"/user/{quote(user)}/"


class HubLogin:
    """A user's browser at JupyterHub: cookies, and the forms' XSRF token."""

    def __init__(self, cluster: Cluster, user: str) -> None:
        self.url = cluster.hub_url
        self.user = user
        self.http = http_session()
        fields = {"username": user, "password": cluster.password(user)}
        answer = self.post("/hub/login", fields)
        assert answer.status_code == 302, f"{answer.status_code}: {answer.text[:2000]}"

    def get(self, path: str, **options: Any) -> requests.Response:
        """Load a page."""
        options.setdefault("timeout", TIMEOUT)
        return self.http.get(self.url + path, **options)

    def post(self, path: str, fields: Json) -> requests.Response:
        """Send the form of the page at `path`."""
        found = XSRF.search(self.get(path).text)
        assert found, f"no form at {path}"
        data = {"_xsrf": found[1]} | fields
        where = self.url + path
        return self.http.post(where, data, timeout=TIMEOUT, allow_redirects=False)

    def make_token(self) -> str:
        """A token for JupyterHub's REST API."""
        # The cookie of the hub's pages; a server has one of its own at its path.
        marks = [c.value for c in self.http.cookies if c.name == "_xsrf" and c.path == "/hub/"]
        answer = self.http.post(
            f"{self.url}/hub/api/users/{self.user}/tokens",
            json={"note": "tests", "expires_in": 7200},
            headers={"X-XSRFToken": str(marks[0]), "Referer": f"{self.url}/hub/token"},
            timeout=TIMEOUT,
        )
        assert answer.status_code == 201, f"{answer.status_code}: {answer.text}"
        token: str = answer.json()["token"]
        return token


class HubApi:
    """JupyterHub's REST API with a user's token."""

    def __init__(self, cluster: Cluster, user: str, token: str) -> None:
        self.cluster = cluster
        self.url = cluster.hub_url
        self.user = user
        self.token = token
        self.http = http_session()
        self.http.headers["Authorization"] = f"token {token}"

    def __call__(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request to /hub/api."""
        options.setdefault("timeout", TIMEOUT)
        return self.http.request(method, f"{self.url}/hub/api{path}", **options)

    def servers(self) -> dict[str, Json]:
        """The user's active servers by name; "" is the default one."""
        answer = self("GET", f"/users/{self.user}")
        assert answer.status_code == 200, f"{answer.status_code}: {answer.text}"
        found: dict[str, Json] = answer.json()["servers"]
        return found

    def _place(self, name: str) -> str:
        rest = f"servers/{quote(name)}" if name else "server"
        return f"/users/{self.user}/{rest}"

    def start(self, name: str = "", options: Json = SERVER) -> requests.Response:
        """Ask for a server: 201 if it runs already, 202 if it is starting."""
        return self("POST", self._place(name), json=options)

    def stop(self, name: str = "") -> requests.Response:
        """End a server, or cancel its start: 204 if it has ended, 202 if it is ending."""
        return self("DELETE", self._place(name))

    def running(self, name: str = "", options: Json = SERVER, seconds: float = STARTS) -> Json:
        """Start a server, and wait until it runs."""
        answer = self.start(name, options)
        assert answer.status_code in (201, 202), f"{answer.status_code}: {answer.text}"
        return self.wait_ready(name, seconds)

    def wait_ready(self, name: str = "", seconds: float = STARTS) -> Json:
        """Wait until a server runs that was asked for."""

        def there() -> Json | None:
            now = self.servers().get(name)
            assert now is not None, f"the server {name!r} did not start: {self.failure(name)}"
            return now if now["ready"] else None

        return wait_for(f"{self.user}'s server {name!r}", there, seconds, LOOK)

    def wait_gone(self, name: str = "", seconds: float = SEEN) -> None:
        """Wait until JupyterHub knows that a server has ended."""
        what = f"no server {name!r} in JupyterHub"
        wait_for(what, lambda: name not in self.servers(), seconds, LOOK)

    def progress(self, name: str = "") -> str:
        """What JupyterHub says about a starting server right now (server-sent events)."""
        lines = []
        path = f"{self._place(name)}/progress"
        with self("GET", path, stream=True, timeout=(5, 2)) as answer:
            try:
                for line in answer.iter_lines():
                    lines.append(line.decode())
            except requests.RequestException:
                pass  # the events go on until the server runs
        return "\n".join(lines)

    def failure(self, name: str) -> str:
        """Why a start has failed, as far as JupyterHub still knows."""
        answer = self("GET", f"{self._place(name)}/progress", timeout=10)
        return answer.text

    def visit(self, name: str = "") -> ServerVisitor:
        """The server itself, with this token."""
        return ServerVisitor(self, name)

    def clean(self, *kept: str) -> None:
        """End all servers but `kept`, wait until JupyterHub knows, and delete the named ones."""
        wait_for("JupyterHub", lambda: is_up(self.cluster), BACK)
        for name in self.servers().keys() - kept:
            self.stop(name)
        wait_for("no servers in JupyterHub", lambda: self.servers().keys() <= {*kept}, STARTS, LOOK)
        every = self("GET", f"/users/{self.user}?include_stopped_servers=1").json()["servers"]
        for name in every.keys() - {"", *kept}:
            self("DELETE", self._place(name), json={"remove": True})


class ServerVisitor(Visitor):
    """A program with a token at a user's server, through JupyterHub's proxy."""

    def __init__(self, hub: HubApi, name: str = "", user: str = "") -> None:
        parts = urlsplit(hub.url)
        super().__init__(f"{parts.scheme}://{parts.netloc}")
        self.prefix = path_of(user or hub.user, name).rstrip("/")
        self.http.headers["Authorization"] = f"token {hub.token}"

    def get(self, path: str, **options: Any) -> requests.Response:
        """Load a path below the server's."""
        return super().get(self.prefix + path, **options)

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request to a path below the server's."""
        return super().send(method, self.prefix + path, **options)

    def websocket(
        self, path: str, subprotocol: str | None = None, origin: str | None = None
    ) -> ClientConnection:
        """Open a WebSocket below the server's path."""
        return super().websocket(self.prefix + path, subprotocol, origin)


# JupyterHub's process


def is_up(cluster: Cluster) -> bool:
    """Whether JupyterHub answers."""
    try:
        return requests.get(f"{cluster.hub_url}/hub/api/", timeout=5).status_code == 200
    except requests.RequestException:
        return False


def kill(cluster: Cluster) -> None:
    """kill -9 of JupyterHub; its supervisor starts it again, and it replaces its proxy."""
    cluster.daemon("kill", "hub", "hub")


def wait_back(cluster: Cluster) -> None:
    """Wait until JupyterHub answers again."""
    wait_for("JupyterHub back", lambda: is_up(cluster), BACK)


# The portal's side


def sessions_at(api: Api, path: str, **query: Any) -> list[Json]:
    """The user's sessions of the server at this path, newest first."""
    return api.list(hub=path, **query)


def session_at(api: Api, path: str) -> Json:
    """The one session that lives at this path."""
    (found,) = sessions_at(api, path, state="running")
    return found


def live_jobs(cluster: Cluster, user: str) -> list[str]:
    """The names of a user's jobs that Slurm has not ended, which are sessions' ids."""
    argv = ["squeue", "--noheader", f"--user={user}", "--format=%j"]
    return cluster.run("login", *argv).split()


TINY_SERVER = sized(1, "400m")


@dataclass(frozen=True)
class HubReply:
    """A response as it was sent, without any redirect followed."""

    status: int
    text: str
    headers: Mapping[str, str]


def send_to_hub(
    hub: HubApi, target: str, headers: Mapping[str, str], method: str = "GET"
) -> HubReply:
    """Send exactly this request target to JupyterHub's proxy; `headers` may name another Host."""
    port = urlsplit(hub.url).port
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
    try:
        connection.putrequest(method, target, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return HubReply(answer.status, answer.read().decode(errors="replace"), dict(answer.headers))
    finally:
        connection.close()
