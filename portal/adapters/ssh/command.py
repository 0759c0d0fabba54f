"""One command over one SSH channel, with a deadline and a limit on its output.

sshd runs commands through the user's shell, which may be any, and whose start-up files may print,
wait, consume standard input, or never end. So that shell gets one command only: to become /bin/sh.
When /bin/sh answers a probe with a random mark, it gets the command as a script, which prints
another mark and becomes the command. Everything before the marks is output of the start-up files;
without the first mark the command was not sent, and without the second one it was not executed.
"""

from __future__ import annotations

import logging
import secrets
import select
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import paramiko

from portal.adapters.ssh.shell.script import LINE, command_script, error_mark, probe
from portal.errors import OutcomeUnknown, Unavailable

log = logging.getLogger(__name__)

START_SECONDS = 10.0
"""Deadline of the shell's start-up files, in seconds."""
NOISE = 64 * 1024
"""Maximum bytes that start-up files may print."""
MOST_ERRORS = 64 * 1024
"""Maximum bytes of standard error."""
PIECE = 64 * 1024
QUIET_SECONDS = 0.5
"""Seconds to wait for remaining output after the command has ended."""
PROBE_SECONDS = 0.5
"""Seconds between two probes: a start-up file may have read the previous one."""

TOO_MUCH_OUTPUT = (
    "Your shell's start-up files on the login node print too much, so nothing was done. Check "
    "your ~/.bashrc (or similar): it should print only in interactive shells."
)
TOO_LATE = (
    "Your shell's start-up files on the login node take too long, so nothing was done. Check "
    "your ~/.bashrc (or similar), and whether your home directory is accessible."
)

NOT_STARTED = (
    "Your shell on the login node ended before it began the command. Check your ~/.bashrc (or "
    "similar)."
)


class Unresponsive(Unavailable):
    """A command was not started, because of the user's shell or home directory."""


class CommandTimeout(OutcomeUnknown):
    """A command was started but did not end in time, or printed too much."""


@dataclass(frozen=True)
class Completed:
    """Result of a command that ran to its end."""

    code: int
    stdout: bytes
    stderr: str

    def error_text(self) -> str:
        """The last line of stderr without Slurm's prefixes; else the exit code."""
        lines = [line for line in self.stderr.splitlines() if line.strip()]
        last = lines[-1] if lines else f"exit code {self.code}"
        return last.removeprefix("sbatch: error: ").removeprefix("allocation failure: ")


class Channel(Protocol):
    """The part of paramiko.Channel that is used."""

    status_event: threading.Event

    @property
    def eof_received(self) -> int | bool: ...
    @property
    def closed(self) -> bool: ...

    def exec_command(self, command: str) -> None: ...
    def close(self) -> None: ...
    def fileno(self) -> int: ...
    def recv_ready(self) -> bool: ...
    def recv_stderr_ready(self) -> bool: ...
    def recv(self, nbytes: int) -> bytes: ...
    def recv_stderr(self, nbytes: int) -> bytes: ...
    def recv_exit_status(self) -> int: ...
    def settimeout(self, timeout: float) -> None: ...
    def sendall(self, s: bytes) -> None: ...
    def shutdown_write(self) -> None: ...


class RemoteCommand:
    """Runs one command to its end, or closes the channel."""

    def __init__(self, channel: Channel, most: int) -> None:
        self._channel = channel
        self._most = most
        self._out = bytearray()
        self._err = bytearray()
        self._ready, self._begin = (secrets.token_hex(16) for _ in range(2))
        """The marks: the shell is ready, the command begins."""
        self._awaited: list[bytes] = [mark.encode() + b"\n" for mark in (self._ready, self._begin)]
        """Marks that standard output has not contained yet."""

    @property
    def _sent(self) -> bool:
        """Whether the command may have been executed."""
        return len(self._awaited) < 2

    def run(self, argv: Sequence[str], stdin: bytes, seconds: float) -> Completed:
        """Run the command within `seconds`, start-up files included.

        Raises Unresponsive if the command was not executed, CommandTimeout if it may have been, and
        paramiko's errors.
        """
        deadline = time.monotonic() + seconds
        script = command_script(argv, stdin, self._begin)
        try:
            self._start(deadline)
            threading.Thread(target=self._send, args=(script, deadline), daemon=True).start()
            self._read(deadline)
            if not self._channel.status_event.wait(max(deadline - time.monotonic(), 0)):
                raise TimeoutError
            code = self._channel.recv_exit_status()
            if code < 0:  # killed by a signal or disconnected: the outcome is unknown
                raise OSError("no exit status")
        except (TimeoutError, _TooMuchError) as error:
            raise self._cut_off(argv, error) from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            if self._sent:
                raise
            raise Unavailable("The login node hung up before anything was done.") from error
        _, mark, stderr = bytes(self._err).partition(error_mark(self._begin).encode() + b"\n")
        if self._awaited and not mark:
            raise Unresponsive(NOT_STARTED)
        return Completed(code, bytes(self._out), stderr.decode(errors="replace"))

    def _start(self, deadline: float) -> None:
        """Wait until /bin/sh answers in place of the user's shell."""
        start = min(deadline, time.monotonic() + START_SECONDS)
        execute(self._channel, LINE, start)
        probed_at = -PROBE_SECONDS
        while not self._sent:
            if (now := time.monotonic()) - probed_at >= PROBE_SECONDS:
                probed_at = now
                self._send_piece(probe(self._ready), start)
            ended = self._channel.eof_received or self._channel.closed
            if self._take():
                continue
            if ended:
                raise Unresponsive(NOT_STARTED)
            self._wait(start, None)

    def _read(self, deadline: float) -> None:
        quiet = False
        while True:
            ended = self._channel.eof_received or self._channel.closed or quiet
            received = self._take()
            if not received and ended:
                return
            if not received:
                # A background process may keep the output open: the command's exit counts.
                exited = self._channel.status_event.is_set()
                quiet = not self._wait(deadline, QUIET_SECONDS if exited else None)

    def _wait(self, deadline: float, most: float | None) -> bool:
        """Wait for output; False if there is none within `most` seconds."""
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        # Polled, since the exit of a command does not make its channel readable.
        pause = min(remaining, QUIET_SECONDS if most is None else most)
        poll = select.poll()
        try:
            poll.register(self._channel.fileno(), select.POLLIN)
            return bool(poll.poll(pause * 1000)) or most is None
        except (OSError, ValueError):
            # Closed concurrently, with its descriptor: this is the end of output.
            if self._channel.closed:
                return True
            raise

    def _take(self) -> bool:
        received = False
        if self._channel.recv_ready():
            received = True
            self._out += self._channel.recv(PIECE)
            self._find_marks()
        if self._channel.recv_stderr_ready():
            received = True
            self._err += self._channel.recv_stderr(PIECE)
        most = NOISE if self._awaited else self._most
        if len(self._out) > most or len(self._err) > MOST_ERRORS:
            raise _TooMuchError
        return received

    def _find_marks(self) -> None:
        while self._awaited and (index := self._out.find(self._awaited[0])) >= 0:
            del self._out[: index + len(self._awaited.pop(0))]

    def _send(self, script: bytes, deadline: float) -> None:
        self._send_piece(script, deadline)
        with suppress(OSError):
            self._channel.shutdown_write()

    def _send_piece(self, data: bytes, deadline: float) -> None:
        try:
            self._channel.settimeout(max(deadline - time.monotonic(), 0.01))
            self._channel.sendall(data)
        except OSError:
            log.debug("the shell ended before it read all its input")

    def _cut_off(self, argv: Sequence[str], error: Exception) -> Unavailable:
        too_much = isinstance(error, _TooMuchError)
        if not self._sent:
            return Unresponsive(TOO_MUCH_OUTPUT if too_much else TOO_LATE)
        if too_much:
            return CommandTimeout(f"{argv[0]} printed too much on the login node.")
        return CommandTimeout(f"The login node did not finish {argv[0]} in time.")


class _TooMuchError(Exception):
    """The output exceeds its limit."""


def execute(channel: Channel, command: str, deadline: float) -> None:
    """Ask sshd to run a command; the channel is closed at the deadline if it has not answered.

    paramiko itself waits for the answer without a timeout.
    """
    guard = threading.Timer(max(deadline - time.monotonic(), 0), channel.close)
    guard.daemon = True
    guard.start()
    try:
        channel.exec_command(command)
    finally:
        guard.cancel()


def hang_up(channel: paramiko.Channel) -> None:
    """Close the channel of a running command, and ask sshd to kill the command."""
    try:
        message = paramiko.Message()
        message.add_byte(bytes([98]))  # SSH_MSG_CHANNEL_REQUEST, RFC 4254 §6.9
        message.add_int(channel.remote_chanid)
        message.add_string("signal")
        message.add_boolean(False)
        message.add_string("KILL")
        send = channel.get_transport()._send_user_message  # type: ignore[attr-defined]
        send(message)  # paramiko has no public method for this
        channel.close()
    except (paramiko.SSHException, OSError, EOFError):
        log.debug("the channel was closed already")
