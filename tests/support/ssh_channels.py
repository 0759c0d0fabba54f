"""paramiko's channel over the pipes of a local shell."""

from __future__ import annotations

import os
import select
import subprocess
import threading
from collections.abc import Callable, Mapping


class ShellChannel:
    """The used part of paramiko's channel, over pipes to a login shell.

    `shell`: its arguments, of which the last one is the command, as sshd runs it.
    """

    def __init__(
        self, shell: Callable[[str], list[str]], environment: Mapping[str, str] | None = None
    ) -> None:
        self.eof_received = False
        self.closed = False
        self.status_event = threading.Event()
        self._shell = shell
        self._environment = environment
        self.process: subprocess.Popen[bytes] | None = None
        self.timeout = 0.0

    def exec_command(self, command: str) -> None:
        """Start the command, as sshd does."""
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            self._shell(command),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
            env=self._environment,
            cwd=(self._environment or {}).get("HOME"),
        )
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
        threading.Thread(target=self._wait, daemon=True).start()
        self._open = {self._fd("stdout"), self._fd("stderr")}

    def _fd(self, name: str) -> int:
        return int(getattr(self.process, name).fileno())

    def _wait(self) -> None:
        assert self.process is not None
        self.process.wait()
        self.status_event.set()

    def fileno(self) -> int:
        """An epoll descriptor, readable if either stream is."""
        if not hasattr(self, "_epoll"):
            self._epoll = select.epoll()
            for number in self._open:
                self._epoll.register(number, select.EPOLLIN)
        return self._epoll.fileno()

    def _ready(self, name: str) -> bool:
        number = self._fd(name)
        if number not in self._open:
            return False
        poll = select.poll()
        poll.register(number, select.POLLIN)
        events = poll.poll(0)
        return bool(events) and bool(events[0][1] & (select.POLLIN | select.POLLHUP))

    def recv_ready(self) -> bool:
        """Whether there is output."""
        return self._ready("stdout")

    def recv_stderr_ready(self) -> bool:
        """Whether there is error output."""
        return self._ready("stderr")

    def _recv(self, name: str, most: int) -> bytes:
        data = os.read(self._fd(name), most)
        if not data:
            self._epoll.unregister(self._fd(name)) if hasattr(self, "_epoll") else None
            self._open.discard(self._fd(name))
            self.eof_received = not self._open
        return data

    def recv(self, nbytes: int) -> bytes:
        """Output."""
        return self._recv("stdout", nbytes)

    def recv_stderr(self, nbytes: int) -> bytes:
        """Error output."""
        return self._recv("stderr", nbytes)

    def recv_exit_status(self) -> int:
        """The exit status."""
        assert self.process is not None
        return int(self.process.returncode)

    def settimeout(self, timeout: float) -> None:
        """Not needed for pipes."""
        self.timeout = timeout

    def sendall(self, s: bytes) -> None:
        """Write to standard input."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(s)

    def shutdown_write(self) -> None:
        """End standard input."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close(self) -> None:
        """Close the channel."""
        self.closed = True
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()
        if hasattr(self, "_epoll"):
            self._epoll.close()
