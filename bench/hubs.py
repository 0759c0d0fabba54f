"""The two JupyterHubs that bench/hub.py compares, as a program with a user's token uses them."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.support.cluster import Cluster, wait_for
from tests.support.paths import ROOT

SCRIPT = ROOT / "bench" / "hub.sh"
START = ROOT / "apps" / "jupyterhub" / "start.sh"
LONGEST = 60.0
"""Seconds for a start or a stop."""
PAUSE = 0.02
"""Seconds between two requests to a server that does not answer yet."""
SIZE = 1024
FILE = "one-kilobyte.txt"
CPUS, MEMORY_MB = 1, 1024
"""As in bench/peer/jupyterhub_config.py."""

OURS: dict[str, Any] = {
    "environment": "python",
    "version": "3.13",
    "resources": {"cpus": CPUS, "memory": f"{MEMORY_MB}m"},
}


def our_arguments() -> list[str]:
    """The arguments of apps/jupyterhub/start.sh that make it fast, for the peer to have, too."""
    script = START.read_text(encoding="utf-8")
    words = shlex.split(script.partition("exec jupyterhub-singleuser")[2].replace("\\\n", " "))
    alone = ("--ServerApp.sock", "--ServerApp.root_dir", "--NotebookNotary")
    return [
        word
        for word in words
        if not word.startswith(alone) and not ("slipway" in word or "$" in word)
    ]


@dataclass
class Hub:
    """A JupyterHub, with a token of one user's."""

    name: str
    url: str
    """Of its proxy."""
    user: str
    options: dict[str, Any]
    """Of a start, as `user_options`."""
    http: requests.Session = field(default_factory=requests.Session)

    def login(self, password: str) -> Hub:
        """Log in as a browser does, and get a token; returns itself."""
        browser = requests.Session()
        browser.trust_env = self.http.trust_env = False
        browser.get(f"{self.url}/hub/login", timeout=LONGEST)
        form = {"username": self.user, "password": password, "_xsrf": browser.cookies["_xsrf"]}
        page = browser.post(f"{self.url}/hub/login", form, allow_redirects=False, timeout=LONGEST)
        assert page.status_code == 302, page.text
        made = browser.post(
            f"{self.url}/hub/api/users/{self.user}/tokens",
            params={"_xsrf": browser.cookies["_xsrf"]},
            json={"note": "benchmark"},
            timeout=LONGEST,
        )
        assert made.status_code == 201, made.text
        self.http.headers["Authorization"] = f"token {made.json()['token']}"
        return self

    @property
    def authorization(self) -> str:
        """The header with the token."""
        return f"Authorization: {self.http.headers['Authorization']!s}"

    def path(self, name: str = "") -> str:
        """The path of a server."""
        return f"/user/{self.user}/{name}/" if name else f"/user/{self.user}/"

    def start(self, name: str = "") -> None:
        """Ask for a server, and wait until it answers through the hub's proxy."""
        answer = self._api("POST", name, json=self.options)
        assert answer.status_code in (201, 202), f"{self.name}: {answer.text}"
        wait_for(f"{self.name}'s server", lambda: self.answers(name), LONGEST, PAUSE)

    def answers(self, name: str = "") -> bool:
        """Whether the server itself answers."""
        answer = self.get(f"{self.path(name)}api/status")
        return answer.status_code == 200 and "kernels" in answer.json()

    def stop(self, name: str = "") -> None:
        """Stop a server, and wait until the hub has forgotten it; no effect without one."""
        wait_for(f"the end of {self.name}'s server", lambda: self._ended(name), LONGEST)

    def _ended(self, name: str) -> bool:
        return self._api("DELETE", name).status_code in (204, 404)

    def _api(self, method: str, name: str, **options: Any) -> requests.Response:
        place = f"servers/{name}" if name else "server"
        address = f"{self.url}/hub/api/users/{self.user}/{place}"
        return self.http.request(method, address, timeout=LONGEST, **options)

    def get(self, path: str) -> requests.Response:
        """Load a path."""
        return self.http.get(self.url + path, allow_redirects=False, timeout=LONGEST)

    def write_file(self) -> str:
        """Write a file of one kilobyte in the default server, and return its path."""
        body = {"type": "file", "format": "text", "content": "x" * SIZE}
        place = f"{self.url}{self.path()}api/contents/{FILE}"
        assert self.http.put(place, json=body, timeout=LONGEST).ok
        path = f"{self.path()}files/{FILE}"
        assert len(self.get(path).content) == SIZE
        return path


class Peer:
    """batchspawner's container (bench/hub.sh)."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def run(self, *words: str, seconds: float = 580) -> str:
        """Run bench/hub.sh and return what it printed."""
        done = subprocess.run(
            [str(SCRIPT), *words],
            env=self._cluster.environment(),
            stdout=subprocess.PIPE,
            text=True,
            timeout=seconds,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"bench/hub.sh {words[0]} failed: {done.stdout}")
        return done.stdout

    def log(self) -> list[str]:
        """What its JupyterHub has logged."""
        return self.run("logs").splitlines()

    @contextmanager
    def started(self) -> Iterator[str]:
        """The address of its proxy, while it runs."""
        try:
            yield f"http://{self.run('start').strip()}:8000"
        finally:
            self.run("stop")


def our_url(cluster: Cluster) -> str:
    """The address of the proxy of `make hub`, in the network where the peer's is."""
    return f"http://{cluster.ctl('address', 'hub').strip()}:8000"
