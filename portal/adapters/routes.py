"""HAProxy's map of routes, changed through its runtime socket without any reload."""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Mapping

from portal.core.access import Traffic
from portal.errors import Unavailable

CANARY = "slipway"
"""An entry that is there as long as HAProxy has not forgotten the map."""
_KEY = re.compile(r"[a-z0-9]+\.([0-9a-f]{64}|public|ssh)")
_TARGET = re.compile(r"[0-9a-fA-F.:]+@[0-9]+@[a-z0-9.-]+")


class HaproxyRoutes:
    """Routes over HAProxy's runtime API (management guide, section 9.3)."""

    def __init__(self, run_directory: str) -> None:
        self._socket = f"{run_directory}/haproxy.sock"
        self._map = f"{run_directory}/routes.map"

    def add(self, key: str, target: str) -> None:
        """Let requests with this key through to the target; again replaces."""
        if not _KEY.fullmatch(key) or not _TARGET.fullmatch(target):
            raise ValueError("a route that HAProxy would misread")
        answer = self._command(f"set map {self._map} {key} {target}")
        if "not found" in answer:
            self._command(f"add map {self._map} {key} {target}")

    def remove(self, key: str) -> None:
        """Shut the way; a key that is not there is fine."""
        if not _KEY.fullmatch(key):
            raise ValueError("a key that HAProxy would misread")
        self._command(f"del map {self._map} {key}")

    def traffic(self) -> dict[str, Traffic]:
        """What browsers have sent, by the app's gateway name."""
        return {}

    def know_background(self, paths: Collection[str]) -> None:
        """Say which requests are no use of an app."""

    def lost(self) -> bool:
        """Whether HAProxy has forgotten the map (it was restarted)."""
        return "value=" not in self._command(f"get map {self._map} {CANARY}")

    def fill(self, routes: Mapping[str, str]) -> None:
        """Give HAProxy the whole map again."""
        for key, target in routes.items():
            self.add(key, target)
        # Last: a crash before this line makes the map count as lost still.
        self._command(f"add map {self._map} {CANARY} 1")

    def _command(self, line: str) -> str:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(5)
                connection.connect(self._socket)
                connection.sendall(line.encode() + b"\n")
                return b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        except OSError as error:
            raise Unavailable("The proxy in front of the apps does not answer.") from error
