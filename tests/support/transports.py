"""A transport that nothing may use."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from portal.adapters.ssh.transport import Completed


class NoTransport:
    """Fails at each use."""

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 0,
    ) -> Completed:
        """Fail."""
        raise AssertionError(f"{user} ran {argv}")


class ReplayTransport:
    """A transport with responses in turn, the last one for ever; it records the commands."""

    def __init__(self, *answers: Completed) -> None:
        self.answers = list(answers)
        self.asked: list[Sequence[str]] = []
        self.users: list[str] = []

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 0,
    ) -> Completed:
        """The next response."""
        self.asked.append(argv)
        self.users.append(user)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class ShellTransport:
    """A transport to this machine, with a temporary home and a greeting login shell."""

    account: int | None = None
    """Whose commands they are; None: those of whoever runs the tests."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.chat = b""

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 0,
    ) -> Completed:
        """Run the command to its end."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        done = subprocess.run(
            self.changed(list(argv)),
            input=stdin,
            capture_output=True,
            env=environment,
            user=self.account,
            check=False,
        )
        return Completed(done.returncode, self.chat + done.stdout, done.stderr.decode())

    def changed(self, words: list[str]) -> list[str]:
        """What is run instead of a command."""
        return words
