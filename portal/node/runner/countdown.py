"""Shows the time left in the status line of the terminals' tmux, and messages near the end."""

from __future__ import annotations

import os
import subprocess
import threading

MINUTE = 60
# Minutes before the end at which a message is shown.
MARKS = (1, 5, 15)
MESSAGE_MILLISECONDS = 15_000
TIMEOUT = 3.0
# In tmux's default status line.
DEFAULT_STATUS = "#{=21:pane_title}"
STATUS = "#{@slipway}"


def time_left(seconds: float) -> str:
    """The time left; far from the end how much it is at least, in coarse steps.

    A change redraws the status line; near the end that is once a minute.
    """
    minutes = int(max(seconds, 0) // MINUTE)
    if minutes < 1:
        return "less than 1 min"
    if minutes >= 120:
        return f"over {minutes // 60} h"
    if minutes > 15:
        hours, remainder = divmod(minutes // 15 * 15, 60)
        parts = ((hours, "h"), (remainder, "min"))
        return " ".join(["over", *(f"{n} {unit}" for n, unit in parts if n)])
    return f"{minutes} min"


class Tmux:
    """The tmux server of the terminal app, which SSH logins attach to as well."""

    def __init__(self, toolkit: str, directory: str) -> None:
        self._program = f"{toolkit}/bin/tmux"
        self._socket = f"{directory}/terminal/tmux-{os.getuid()}/default"

    def server(self) -> int | None:
        """A number that differs for each server; None if none is running."""
        try:
            return os.stat(self._socket).st_ino
        except OSError:
            return None

    def run(self, *words: str) -> str | None:
        """Run a tmux command; None if it failed."""
        try:
            process = subprocess.run(
                [self._program, "-u", "-S", self._socket, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return process.stdout.decode(errors="replace") if process.returncode == 0 else None

    def show_status(self, text: str) -> bool:
        """Set our part of the status line, unless the user has another status line."""
        if self.run("set", "-g", "@slipway", text) is None:
            return False
        right = (self.run("show", "-gv", "status-right") or "").rstrip("\n")
        if DEFAULT_STATUS in right and STATUS not in right:
            self.run("set", "-g", "status-right", f"{STATUS}  {right}")
        return True

    def show_message(self, text: str) -> bool:
        """Show a message in all clients; returns whether one has shown it."""
        clients = (self.run("list-clients", "-F", "#{client_name}") or "").splitlines()
        # "#" begins a format.
        plain = text.replace("#", "##")
        duration = str(MESSAGE_MILLISECONDS)
        outputs = [self.run("display-message", "-d", duration, "-c", c, plain) for c in clients]
        return any(output is not None for output in outputs)


class Countdown:
    """Shows the time left, from the portal's answers to heartbeats, to users of terminals."""

    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux
        self._shown: tuple[str, int] | None = None
        self._mark: int | None = None
        self._lock = threading.Lock()

    def tell(self, answer: dict[str, object]) -> None:
        """Show an answer's name, time left and kept files; other answers are ignored."""
        name, seconds = answer.get("name"), answer.get("seconds_left")
        server = self._tmux.server()
        if not isinstance(name, str) or server is None:
            return
        with self._lock:
            if not isinstance(seconds, int | float):
                self._status(name, server)
                return
            idle = answer.get("unused") is True
            left = time_left(seconds)
            self._status(
                f"{name} · {'unused, ends in ' + left if idle else left + ' left'}", server
            )
            self._warn(f"{name} ends in {left}", seconds, idle, str(answer.get("kept") or ""))

    def announce(self, text: str) -> None:
        """Show a message now."""
        if self._tmux.server() is not None:
            with self._lock:
                self._tmux.show_message(text)

    def _status(self, text: str, server: int) -> None:
        shown = (text, server)
        if shown != self._shown and self._tmux.show_status(text.replace("#", "##")):
            self._shown = shown

    def _warn(self, warning: str, seconds: float, idle: bool, kept: str) -> None:
        mark = next((m for m in MARKS if seconds <= m * MINUTE), None)
        if mark is None:  # far away, or extended
            self._mark = None
        elif self._mark is None or mark < self._mark:
            condition = " unless you use it" if idle else ""
            if self._tmux.show_message(f"{warning}{condition}. {kept}".rstrip()):
                self._mark = mark
