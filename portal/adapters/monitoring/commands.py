"""Times Slurm's commands on their way to the login node."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from portal.adapters.certificates import CertificateAuthority
from portal.adapters.ssh.command import Completed
from portal.adapters.ssh.hosts import HostOrder
from portal.adapters.ssh.per_user import ThreadBudget
from portal.adapters.ssh.transport import MOST_OUTPUT, SshTransport
from portal.config import LoginSettings
from portal.core.interfaces.monitoring import Measures

COMMANDS = (
    "sbatch", "scancel", "scontrol", "sinfo", "squeue", "sacct", "sacctmgr", "sstat", "sprio",
    "sshare", "srun",
)  # fmt: skip
"""Names that metrics distinguish; all other commands are not Slurm's."""
_NAMED = re.compile(rf"(?:^|[\s/;&|(])({'|'.join(COMMANDS)})(?=\s|$)")


def command_of(argv: Sequence[str]) -> str:
    """The command of Slurm's that an argument list runs; "" if none."""
    found = _NAMED.search(" ".join(argv))
    return found[1] if found else ""


class MeasuredTransport(SshTransport):
    """An SshTransport that measures."""

    def __init__(
        self,
        settings: LoginSettings,
        authority: CertificateAuthority,
        operator: str,
        hosts: HostOrder,
        measures: Measures,
        budget: ThreadBudget | None = None,
    ) -> None:
        super().__init__(settings, authority, operator, hosts, budget)
        self._measures = measures

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = MOST_OUTPUT,
    ) -> Completed:
        """Run a command on the login node as the user, and note how long one of Slurm's took."""
        name, begun = command_of(argv), time.monotonic()
        outcome = "unanswered"
        try:
            done = super().run(user, argv, stdin, seconds, most)
            outcome = {0: "ok", 124: "unanswered", 137: "unanswered"}.get(done.code, "failed")
            return done
        finally:
            if name:
                self._measures.command(name, outcome, time.monotonic() - begun)
