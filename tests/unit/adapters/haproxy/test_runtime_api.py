"""Commands to HAProxy while its master restarts, as it does at each start and reload."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from portal.adapters.haproxy import runtime_api
from portal.adapters.haproxy.runtime_api import Haproxy
from portal.errors import Unavailable

LIST = b"#<PID> <type>\n1 master 0\n# workers\n42 worker 1 0d 2.6\n# old workers\n41 worker 2\n\n"
ECHO = b"echo"


class Socket:
    """An HAProxy socket: it refuses connections until `listen`, then sends these responses."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._thread = threading.Thread()

    def listen(self, answers: Iterable[bytes]) -> None:
        """From now on each connection gets the next response; an empty one closes it."""
        self._socket.listen()
        self._thread = threading.Thread(target=self._answer, args=(answers,))
        self._thread.start()

    def _answer(self, answers: Iterable[bytes]) -> None:
        with contextlib.suppress(OSError):  # closed
            for answer in answers:
                caller, _ = self._socket.accept()
                with caller, caller.makefile("rb") as file:
                    command = file.read()
                    caller.sendall(command if answer == ECHO else answer)

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):  # it never listened
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread.ident:
            self._thread.join()
        self._socket.close()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Socket]:
    """The master's socket."""
    with contextlib.closing(Socket(tmp_path / "master.sock")) as found:
        yield found


def test_a_restarting_master_is_waited_for(
    tmp_path: Path, master: Socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            master.listen([b"", LIST, ECHO, b"", ECHO])

    monkeypatch.setattr("portal.adapters.haproxy.runtime_api.time.sleep", pause)
    new, old = Haproxy(str(tmp_path)).processes()
    assert new.ask("show sess") == "@!42 show sess\n"
    assert old.ask("show sess", "show table x") == "@!41 show sess;@!41 show table x\n"
    assert len(pauses) == 3 + 1 + 1  # refused, and closed twice


@pytest.mark.parametrize("listens", [True, False])
def test_a_master_that_stays_away_is_reported(
    tmp_path: Path, master: Socket, monkeypatch: pytest.MonkeyPatch, listens: bool
) -> None:
    monkeypatch.setattr(runtime_api, "_PATIENCE", 0.1)
    if listens:
        master.listen(itertools.repeat(b""))
    with pytest.raises(Unavailable):
        list(Haproxy(str(tmp_path)).processes())


def test_a_closed_connection_is_no_success(tmp_path: Path) -> None:
    with contextlib.closing(Socket(tmp_path / "haproxy.sock")) as worker:
        worker.listen([b""])
        with pytest.raises(Unavailable):
            Haproxy(str(tmp_path)).ask("set map x y z")
