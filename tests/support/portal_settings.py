"""Changes of the portal's settings on a running cluster."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable

import requests

from tests.support.cluster import Cluster

SETTINGS = "/etc/slipway/slipway.toml"
EVERY = 0.1
"""Seconds between two requests; more of them would take the processor from the new processes."""
SECONDS = 500.0


def slipway_apply(
    cluster: Cluster, *options: str, host: str = "portal"
) -> subprocess.CompletedProcess[str]:
    """Run the command as root."""
    return cluster.attempt("exec", host, "--", "slipway", "apply", *options, seconds=SECONDS)


def change_settings(
    cluster: Cluster, *lines: str, section: str = "web", host: str = "portal"
) -> None:
    """Have these lines in a section; what an earlier attempt left is replaced."""
    text = cluster.run(host, "cat", SETTINGS)
    keys = {line.partition(" = ")[0] for line in lines}
    kept = [line for line in text.splitlines() if line.partition(" = ")[0] not in keys]
    place = kept.index(f"[{section}]") + 1
    kept[place:place] = lines
    cluster.ctl("put", host, SETTINGS, stdin="\n".join(kept) + "\n")


class RepeatedRequests:
    """Somebody who sends the same request again and again, and notes the answers."""

    def __init__(self, send: Callable[[], requests.Response]) -> None:
        self.answers: Counter[int] = Counter()
        self.longest = 0.0
        self._send = send

    def run(self, stop: threading.Event) -> None:
        """Send until told to stop; raises what `requests` raises."""
        while not stop.wait(EVERY):
            begun = time.monotonic()
            self.answers[self._send().status_code] += 1
            self.longest = max(self.longest, time.monotonic() - begun)
