"""Several login nodes, tried in order; unreachable ones are tried last until they answer again."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

PROBE_SECONDS = 15.0
"""Time between two probes of a login node that does not answer."""
_ANSWER_SECONDS = 5.0


def answers(host: str, port: int) -> bool:
    """Whether an SSH server answers at this address."""
    try:
        with socket.create_connection((host, port), _ANSWER_SECONDS) as sock:
            sock.settimeout(_ANSWER_SECONDS)
            return sock.recv(4) == b"SSH-"
    except (OSError, UnicodeError):
        return False


class HostOrder:
    """The order in which to try the login nodes; shared by all threads of a process.

    While a login node is unreachable, a thread probes it, so that no command waits for the probe.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        port: int,
        probe: Callable[[str, int], bool] = answers,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._hosts = tuple(hosts)
        self._port = port
        self._probe = probe
        self._pause = pause
        self._unreachable: set[str] = set()
        self._probing = False
        self._lock = threading.Lock()

    def candidates(self) -> list[str]:
        """All login nodes: those that answer before the others, each group in the site's order."""
        with self._lock:
            return sorted(self._hosts, key=self._unreachable.__contains__)

    def is_first(self, host: str) -> bool:
        """Whether this is the first candidate; connections to others are replaced."""
        return host == self.candidates()[0]

    def failed(self, host: str) -> None:
        """Record that a host did not answer, or refused the portal's own account."""
        with self._lock:
            if len(self._hosts) < 2 or host in self._unreachable:
                return
            self._unreachable.add(host)
            starts, self._probing = not self._probing, True
        log.warning("login node %s does not answer; others are tried before it", host)
        if starts:
            threading.Thread(
                target=self._probe_until_all_answer, name="login-nodes", daemon=True
            ).start()

    def _probe_until_all_answer(self) -> None:
        while True:
            self._pause(PROBE_SECONDS)
            with self._lock:
                unreachable = sorted(self._unreachable)
            answering = {host for host in unreachable if self._probe(host, self._port)}
            for host in sorted(answering):
                log.warning("login node %s answers again", host)
            with self._lock:
                self._unreachable -= answering
                if not self._unreachable:
                    self._probing = False
                    return
