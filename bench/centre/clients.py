"""Has people and runners act as clients, in the network of the portal's container."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.cluster import CTL, Cluster
from tests.support.paths import ROOT

Json = dict[str, Any]


class Clients:
    """Starts clients, and remembers who is logged in."""

    def __init__(self, cluster: Cluster, password: Callable[[str], str]) -> None:
        self._cluster = cluster
        self._password = password
        self._cookies: dict[str, dict[str, str]] = {}
        self._ca = cluster.run("portal", "cat", "/var/lib/slipway/ca/gateway_ca.pem")
        self._site_ca = cluster.run(
            "portal", "sh", "-c", "cat /var/lib/slipway/tls/ca.crt 2>/dev/null || true"
        )

    def act(self, action: str, people: Sequence[str], **options: Any) -> Json:
        """Have these people carry out an action of load.py; returns its results."""
        url = self._cluster.url
        order = {
            "action": action, "origin": url, "host": url.partition("://")[2],
            "ca": self._ca + self._site_ca,
            "people": [
                {
                    "name": name, "password": self._password(name),
                    "cookies": self._cookies.get(name),
                }
                for name in people
            ],
        }  # fmt: skip
        inside = [str(CTL), "network", "portal", "--", sys.executable, "-m", "bench.centre.load"]
        done = subprocess.run(
            inside, input=json.dumps(order | options), capture_output=True, encoding="utf-8",
            env=self._cluster.environment(), cwd=ROOT, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(f"the clients failed:\n{done.stderr}")
        results: Json = json.loads(done.stdout)
        return results

    def logged_in(self, people: Sequence[str]) -> list[str]:
        """Those of these people who are logged in."""
        return [name for name in people if name in self._cookies]

    def log_in(self, people: Sequence[str], seconds: float) -> Json:
        """Log these people in within some seconds, unless they are; {} if all of them were."""
        new = [name for name in dict.fromkeys(people) if name not in self._cookies]
        if not new:
            return {}
        results = self.act("log_in", new, seconds=seconds)
        self._cookies |= results["cookies"]
        return results
