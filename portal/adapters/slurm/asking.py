"""Queries Slurm as the reader, and tells Slurm's failures from rejected queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from portal.adapters.slurm import commands
from portal.adapters.ssh.transport import Transport
from portal.core.cluster.job_reports import JobReport
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


class QueryRunner:
    """Runs queries as the reader's account."""

    def __init__(self, transport: Transport, reader: str, seconds: float) -> None:
        self._transport = transport
        self._reader = reader
        self._seconds = seconds
        self._names: dict[str, str] = {}

    def ask(self, argv: Sequence[str], stdin: str = "") -> str:
        """The output of a command; raises Unavailable, RefusedError."""
        words = ["env", *commands.ENVIRONMENT, *argv]
        result = self._transport.run(self._reader, words, stdin.encode(), seconds=self._seconds)
        if result.code != 0:
            down = any(word in result.stderr for word in DOWN)
            kind = Unavailable if down or not result.stderr.strip() else RefusedError
            raise kind(f"Slurm does not answer: {result.error_text()}")
        return result.stdout.decode(errors="replace")

    def with_canceller(self, report: JobReport) -> JobReport:
        """Replace the UID of the user who cancelled the job, as accounting has it, by the name."""
        uid = report.cancelled_by
        if uid is None or not uid.isdigit():
            return report
        if uid not in self._names:
            result = self._transport.run(self._reader, commands.user_argv(uid))
            self._names[uid] = result.stdout.decode(errors="replace").strip() or uid
        return replace(report, cancelled_by=self._names[uid])
