"""Accept connections to a session's SSH server, and start one sshd for each, like inetd.

`ssh-listener SOCKET PROGRAM ARGUMENT…`. Anyone can connect, so clients that have not logged in have
separate slots: if all are in use, the client that has waited longest is disconnected.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

BACKLOG = 512
# sshd processes whose client has not logged in, and (not fewer) whose client has.
WAITING, LOGGED_IN = 32, 64
# Longer than sshd's LoginGraceTime (apps/ssh/start.sh), so that older clients have logged in.
LOGIN_SECONDS = 30.0
# Seconds after which ended processes are noticed without a new connection.
PAUSE = 5.0
# sshd's program for clients that have not logged in.
BEFORE_LOGIN = b"sshd-auth\n"


class Listener:
    """Runs `argv` for each connection, with it as standard input and output."""

    def __init__(self, argv: list[str]) -> None:
        self._argv = argv
        # When each process was started, oldest first.
        self._started: dict[int, float] = {}

    def serve(self, listener: socket.socket) -> None:
        """Accept connections until an exception, such as SystemExit, ends it."""
        listener.settimeout(PAUSE)
        while True:
            try:
                stream, _ = listener.accept()
            except TimeoutError:
                self._reap()
                continue
            with stream:
                self._reap()
                if self._has_room():
                    self._start(stream)

    def stop(self) -> None:
        """End all connections."""
        for pid in self._started:
            _kill(pid, signal.SIGTERM)

    def _has_room(self) -> bool:
        """Whether one more can be served; ends the oldest of too many that have not logged in."""
        if len(self._started) < WAITING:
            return True
        now = time.monotonic()
        waiting = [
            pid
            for pid, started in self._started.items()
            if now - started < LOGIN_SECONDS and not has_logged_in(pid)
        ]
        logged_in = len(self._started) - len(waiting)
        if len(waiting) >= WAITING:
            _kill(waiting[0], signal.SIGKILL)
            del self._started[waiting[0]]
        return logged_in < LOGGED_IN

    def _start(self, stream: socket.socket) -> None:
        files = [(os.POSIX_SPAWN_DUP2, stream.fileno(), number) for number in (0, 1)]
        try:
            # A separate process group, which is ended as a whole.
            pid = os.posix_spawn(
                self._argv[0], self._argv, os.environ, file_actions=files, setpgroup=0
            )
        except OSError as error:
            print(f"A connection cannot be served: {error}", flush=True)
            return
        self._started[pid] = time.monotonic()

    def _reap(self) -> None:
        try:
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self._started.pop(pid, None)
        except ChildProcessError:
            return


def has_logged_in(pid: int, proc: str = "/proc") -> bool:
    """Whether the client of this sshd has logged in: then another child serves the user."""
    try:
        with open(f"{proc}/{pid}/task/{pid}/children", "rb") as file:
            children = file.read().split()
        return any(_name(f"{proc}/{child.decode()}/comm") != BEFORE_LOGIN for child in children)
    except OSError:  # it has just ended
        return False


def _name(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _kill(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError:
        return


def main(arguments: list[str]) -> int:
    """Listen until SIGTERM."""
    path, *argv = arguments
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    server = Listener(argv)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(BACKLOG)
        try:
            server.serve(listener)
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
