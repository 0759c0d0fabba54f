"""Measures the duration of Slurm's commands on the login node."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from portal.adapters.certificates import CertificateAuthority
from portal.adapters.ssh.command import Completed
from portal.adapters.ssh.hosts import HostOrder
from portal.adapters.ssh.per_user import ThreadBudget
from portal.adapters.ssh.pool import MOST_ON_HOST
from portal.adapters.ssh.transport import MOST_OUTPUT, SshTransport
from portal.config import LoginSettings
from portal.core.interfaces.monitoring import Measures

COMMANDS = (
    "sbatch", "scancel", "scontrol", "sinfo", "squeue", "sacct", "sacctmgr", "sstat", "sprio",
    "sshare", "srun",
)  # fmt: skip
"""The commands that metrics distinguish; all others are not Slurm's."""
_COMMAND = re.compile(rf"(?:^|[\s/;&|(])({'|'.join(COMMANDS)})(?=\s|$)")


def command_of(argv: Sequence[str]) -> str:
    """The Slurm command that an argument list runs; "" if none."""
    match = _COMMAND.search(" ".join(argv))
    return match[1] if match else ""


class MeasuredTransport(SshTransport):
    """An SshTransport that measures Slurm's commands."""

    def __init__(
        self,
        settings: LoginSettings,
        authority: CertificateAuthority,
        operator: str,
        hosts: HostOrder,
        measures: Measures,
        budget: ThreadBudget | None = None,
        most: int = MOST_ON_HOST,
    ) -> None:
        super().__init__(settings, authority, operator, hosts, budget, most)
        self._measures = measures

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = MOST_OUTPUT,
    ) -> Completed:
        """Run a command on the login node as the user; record the duration of a Slurm command."""
        name, start = command_of(argv), time.monotonic()
        outcome = "unanswered"
        try:
            result = super().run(user, argv, stdin, seconds, most)
            outcome = {0: "ok", 124: "unanswered", 137: "unanswered"}.get(result.code, "failed")
            return result
        finally:
            if name:
                self._measures.command(name, outcome, time.monotonic() - start)
