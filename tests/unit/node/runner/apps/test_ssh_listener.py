"""B3: who has not logged in takes no place at a session's SSH server from those who log in."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.runner.apps.ssh_listener import has_logged_in
from tests.support.cluster import wait_for
from tests.support.paths import ROOT

BANNER = b"SSH-2.0-x\n"
WAITING, LOGGED_IN = 4, 6
"""Fewer places than a session has: each takes three processes here."""
PATIENCE = 120
START = f"""\
import sys
sys.path.insert(0, {str(ROOT)!r})
from portal.node.runner.apps import ssh_listener
ssh_listener.WAITING, ssh_listener.LOGGED_IN = {WAITING}, {LOGGED_IN}
ssh_listener.LOGIN_SECONDS = {PATIENCE}
sys.exit(ssh_listener.main(sys.argv[1:]))
"""
LINGERS = 2
"""Processes that a machine has not ended yet."""

# As sshd: another program until its client has logged in, and then one that serves the user.
SSHD = """\
#!/bin/sh
{folder}/sshd-auth 100 < /dev/null > /dev/null 2>&1 &
until read -r name < /proc/$!/comm && [ "$name" = sshd-auth ]; do :; done
echo SSH-2.0-x
read -r line
kill $!
[ "$line" = in ] || exit
sleep 100 < /dev/null > /dev/null 2>&1 &
echo welcome
while read -r line; do echo "$line"; done
kill $!
"""


class Server:
    """A running listener, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "ssh.sock")
        program = folder / "connection"
        program.write_text(SSHD.format(folder=folder))
        program.chmod(0o700)
        (folder / "sshd-auth").symlink_to(str(shutil.which("sleep")))
        argv = [sys.executable, "-IS", "-c", START, self._path, str(program)]
        self.process = subprocess.Popen(argv)
        wait_for("the socket", (folder / "ssh.sock").exists)

    def connect(self) -> socket.socket:
        """A client that says nothing."""
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.connect(self._path)
            stream.settimeout(PATIENCE)
        except OSError:
            stream.close()
            raise
        return stream

    def log_in(self) -> socket.socket:
        """A client that has logged in; ConnectionError if it is refused."""
        stream = self.connect()
        if stream.recv(100) == BANNER:
            stream.sendall(b"in\n")
            if stream.recv(100) == b"welcome\n":
                return stream
        stream.close()
        raise ConnectionError

    def served(self) -> list[int]:
        """The processes of connections."""
        file = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [pid for pid in map(int, file.read_text().split()) if _lives(pid)]


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    return False


def echoes(stream: socket.socket) -> bool:
    stream.sendall(b"still here\n")
    return stream.recv(100) == b"still here\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A listener; it ends with the test."""
    running = Server(tmp_path)
    yield running
    running.process.terminate()
    running.process.wait()


@pytest.fixture
def strangers(server: Server) -> Iterator[list[socket.socket]]:
    """Many more than there are places, who are silent."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(server.connect()) for _ in range(10 * WAITING)]


def test_the_owner_logs_in_beside_strangers_who_are_silent(
    server: Server, strangers: list[socket.socket]
) -> None:
    with server.log_in() as owner:
        assert echoes(owner)
        # The others' places are theirs alone: whoever has logged in stays, however many come.
        with contextlib.ExitStack() as stack:
            for _ in range(3 * WAITING):
                stack.enter_context(server.connect())
            assert echoes(owner)
            wait_for("few", lambda: len(server.served()) <= WAITING + 1 + LINGERS, PATIENCE)


def test_the_one_that_waited_longest_gives_way(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(server.connect()) for _ in range(WAITING)]
        assert [stream.recv(100) for stream in held] == [BANNER] * WAITING
        late = stack.enter_context(server.connect())
        assert late.recv(100) == BANNER
        assert held[0].recv(100) == b""
        held[1].settimeout(0.3)
        with pytest.raises(TimeoutError):
            held[1].recv(100)


def test_who_has_logged_in_has_places_of_its_own_and_they_are_bounded(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(server.log_in()) for _ in range(LOGGED_IN)]
        with pytest.raises(ConnectionError):
            server.log_in()
        assert all(echoes(stream) for stream in held)
        held[0].close()
        wait_for("a place", lambda: len(server.served()) < LOGGED_IN, PATIENCE)
        assert echoes(stack.enter_context(server.log_in()))


def test_closing_cuts_all(server: Server) -> None:
    with server.log_in() as owner, server.connect() as stranger:
        assert stranger.recv(100) == BANNER
        server.process.terminate()
        assert (owner.recv(100), stranger.recv(100)) == (b"", b"")
        assert server.process.wait(PATIENCE) == 0


def test_a_program_that_is_missing_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server = Server(tmp_path)
    (tmp_path / "connection").unlink()
    with server.connect() as stream:
        assert stream.recv(100) == b""
    server.process.terminate()
    server.process.wait()
    assert "A connection cannot be served: " in capfd.readouterr().out


def test_a_process_that_has_ended_has_not_logged_in(tmp_path: Path) -> None:
    assert not has_logged_in(os.getpid(), str(tmp_path))
