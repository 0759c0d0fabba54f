"""Asks Slurm as the reader, and says which failures are Slurm's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from portal.adapters.slurm import commands
from portal.adapters.ssh.transport import Transport
from portal.core.cluster.jobs import JobReport
from portal.errors import Unavailable

# Messages of Slurm's commands for failures of Slurm, not of the request (slurm_errno.c).
DOWN = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Zero Bytes were transmitted",
    "Transport endpoint is not connected",
    "slurmdbd",
    "in a backup controller",
    "backup controller in standby mode",
    "Rate limit exceeded",
    "slurm_persist_conn",
    "Problem talking to the database",
)


class RefusedError(Unavailable):
    """Slurm answers, but rejects this query."""


class Asker:
    """Queries by the reader's account."""

    def __init__(self, transport: Transport, reader: str, seconds: float) -> None:
        self._transport = transport
        self._reader = reader
        self._seconds = seconds
        self._names: dict[str, str] = {}

    def ask(self, argv: Sequence[str], stdin: str = "") -> str:
        """What the command prints; raises Unavailable, RefusedError."""
        words = ["env", *commands.ENVIRONMENT, *argv]
        done = self._transport.run(self._reader, words, stdin.encode(), seconds=self._seconds)
        if done.code != 0:
            down = any(word in done.stderr for word in DOWN)
            kind = Unavailable if down or not done.stderr.strip() else RefusedError
            raise kind(f"Slurm does not answer: {done.error_text()}")
        return done.stdout.decode(errors="replace")

    def named(self, report: JobReport) -> JobReport:
        """The report with the name of the user who cancelled the job; accounting has the UID."""
        number = report.cancelled_by
        if number is None or not number.isdigit():
            return report
        if number not in self._names:
            done = self._transport.run(self._reader, commands.user_argv(number))
            self._names[number] = done.stdout.decode(errors="replace").strip() or number
        return replace(report, cancelled_by=self._names[number])
