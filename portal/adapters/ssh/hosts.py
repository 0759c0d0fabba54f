"""Several login nodes, tried in order; one that does not answer is left out until it does again."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

LOOK_SECONDS = 15.0
"""Time between two looks at a login node that does not answer."""
_ANSWER_SECONDS = 5.0


def answers(host: str, port: int) -> bool:
    """Whether an SSH server greets there."""
    try:
        with socket.create_connection((host, port), _ANSWER_SECONDS) as sock:
            sock.settimeout(_ANSWER_SECONDS)
            return sock.recv(4) == b"SSH-"
    except (OSError, UnicodeError):
        return False


class HostOrder:
    """In which order to try the login nodes; shared by all threads of a process.

    No command waits to find out that a login node is back: a thread looks, while one is away.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        port: int,
        look: Callable[[str, int], bool] = answers,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._hosts = tuple(hosts)
        self._port = port
        self._look = look
        self._pause = pause
        self._away: set[str] = set()
        self._looking = False
        self._lock = threading.Lock()

    def candidates(self) -> list[str]:
        """All of them, first those that answer, each part in the site's order."""
        with self._lock:
            return sorted(self._hosts, key=self._away.__contains__)

    def is_first(self, host: str) -> bool:
        """Whether no earlier one answers, so that connections to it are kept."""
        return host == self.candidates()[0]

    def failed(self, host: str) -> None:
        """It did not answer, or did not let the portal's own account in."""
        with self._lock:
            if len(self._hosts) < 2 or host in self._away:
                return
            self._away.add(host)
            starts, self._looking = not self._looking, True
        log.warning("login node %s does not answer; others are tried before it", host)
        if starts:
            threading.Thread(target=self._look_again, name="login-nodes", daemon=True).start()

    def _look_again(self) -> None:
        while True:
            self._pause(LOOK_SECONDS)
            with self._lock:
                away = sorted(self._away)
            back = {host for host in away if self._look(host, self._port)}
            for host in sorted(back):
                log.warning("login node %s answers again", host)
            with self._lock:
                self._away -= back
                if not self._away:
                    self._looking = False
                    return
