"""Slurm's commands on the login node: changes run as the user, queries as the reader."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta

from portal.adapters.slurm import accounting, commands, estimate, queue
from portal.adapters.slurm.asking import QueryRunner, RefusedError
from portal.adapters.slurm.jobs import halving
from portal.adapters.slurm.limits.reader import LimitsReader
from portal.adapters.slurm.refusals import REFUSED, refusal
from portal.adapters.ssh import key_commands
from portal.adapters.ssh.shell import home, umask
from portal.adapters.ssh.transport import Transport
from portal.core.cluster.inventory import Node, Partition
from portal.core.cluster.job_reports import Estimate, JobReport
from portal.core.cluster.limits import Limits
from portal.core.interfaces.systems import Scheduler
from portal.core.jobs.job import Job
from portal.errors import GresUnknown, InvalidRequest, OutcomeUnknown, Unavailable

log = logging.getLogger(__name__)

ESTIMATE_SECONDS = 5.0
"""Deadline of an estimate, in seconds."""

# scancel's errors for jobs that have ended; it continues with the others.
_OVER_ALREADY = ("Invalid job id", "already completing")


class Slurm(Scheduler):
    """Scheduler over Slurm's command line tools."""

    def __init__(
        self,
        transport: Transport,
        reader: str,
        directory: str,
        seconds: float,
        operator: str = "",
        other_queue: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`other_queue`: squeue's lines from another source (slurm.reader); None: run squeue."""
        self._transport = transport
        self._other_queue = other_queue
        self._operator = operator
        self._directory = directory
        self._seconds = seconds
        self._queries = QueryRunner(transport, reader, seconds)
        self._ask = self._queries.ask
        self._queue = queue.QueueReader()
        self._limits = LimitsReader(self._ask)

    # As the user

    def submit(self, user: str, session: str, spec: str, script: str) -> str:
        """Submit as the user and return the job id.

        One round trip: the first line of standard input becomes the runner's specification, in a
        file that only the user can read; the rest is the batch script. Creating the session's
        folder claims the submission: a concurrent second one fails before it reaches sbatch.
        """
        folder = f"{self._directory}/sessions/{session}"
        sbatch = shlex.join(
            ["timeout", "--kill-after=2", f"{self._seconds:.0f}", *commands.sbatch_argv()]
        )
        login = f"{folder}/login"
        steps = (
            home.ENTER,
            "umask=$(umask); umask 077",
            "export LC_ALL=C.UTF-8",  # other variables would be exported to the job
            f"mkdir -p {self._directory}/logs {self._directory}/sessions {home.OR_REPORT}",
            f"mkdir {folder} {home.OR_REPORT}",
            umask.ask_step(login),
            # A session starts without an SSH key, too.
            f"{{ {key_commands.make_step(self._directory)} || :; }}",
            "IFS= read -r spec",
            f'printf "%s\\n" "$spec" | cat > {folder}/spec.json {home.OR_REPORT}',
            umask.take_step(login),
            f"exec {sbatch}",
        )
        result = self._transport.run(
            user,
            ["/bin/sh", "-c", "\n".join(steps)],
            f"{spec}\n{script}".encode(),
            self._seconds + 5,
        )
        if result.code in (124, 137):  # timeout(1) killed sbatch: Slurm may have received the job
            raise OutcomeUnknown("Slurm took too long to accept the job.")
        if result.code != 0:
            self._transport.run(user, ["rm", "-rf", "--", folder], seconds=self._seconds)
            home.check_home(result)
            raise refusal(result)
        return self._number(user, session)

    def _number(self, user: str, session: str) -> str:
        """The job id from Slurm's queue, since sbatch's output came through the user's shell."""
        try:
            reports = self.find(session, user)
        except Unavailable as error:
            raise OutcomeUnknown(
                f"Slurm accepted the job, but its id is unknown: {error}"
            ) from error
        if not reports:
            raise OutcomeUnknown("sbatch reported success, but Slurm's queue lacks the job.")
        return max(reports, key=lambda job: (not job.state.over, int(job.job_id))).job_id

    def estimate(self, user: str, script: str) -> Estimate:
        seconds = min(self._seconds, ESTIMATE_SECONDS)
        argv = ["env", *commands.ENVIRONMENT, "timeout", "--kill-after=1", f"{seconds:.0f}"]
        result = self._transport.run(
            user, [*argv, *estimate.estimate_argv()], script.encode(), seconds + 2
        )
        if result.code in (124, 137):
            raise Unavailable("Slurm took too long to estimate a start.")
        if result.code == 0:
            try:
                return estimate.estimate_parse(result.stderr)
            except commands.UnexpectedOutput as error:
                raise Unavailable(f"Slurm's estimate cannot be parsed: {error}") from error
        refused = refusal(result)
        # Whether GPUs are unknown permanently depends on the nodes, which the caller knows.
        if isinstance(refused, GresUnknown) or not isinstance(refused, InvalidRequest):
            raise refused
        text = refused.errors[0].message.removeprefix(REFUSED)
        return Estimate(None, "", f"Slurm would reject it: {text}")

    def cancel(self, user: str, *job_ids: str) -> None:
        """Cancel a user's jobs, all with one command. Idempotent.

        Runs as the operator if there is one, so that it does not depend on the user's shell.
        """
        targets = list(filter(commands.TARGET.fullmatch, job_ids))
        if not targets:
            return
        argv = self._limited(commands.scancel_argv(*targets, user=user if self._operator else ""))
        result = self._transport.run(self._operator or user, argv, seconds=self._seconds + 5)
        errors = [line for line in result.stderr.splitlines() if line.strip()]
        failures = [line for line in errors if not any(word in line for word in _OVER_ALREADY)]
        if result.code in (124, 137):
            raise Unavailable("Slurm took too long to cancel the job.")
        if result.code != 0 and (failures or not errors):
            raise Unavailable(f"Slurm did not cancel the job: {result.error_text()}")

    def _limited(self, argv: Sequence[str]) -> list[str]:
        """A command with its own timeout, so that a slow Slurm does not penalise the user."""
        return ["timeout", "--kill-after=2", f"{self._seconds:.0f}", *argv]

    def prepare(self, user: str, session: str, spec: str) -> None:
        folder = f"{self._directory}/sessions/{session}"
        steps = (
            home.ENTER,
            "umask 077; export LC_ALL=C.UTF-8",
            f"rm -rf -- {folder} {home.OR_REPORT}",
            f"mkdir -p {self._directory}/logs {folder} {home.OR_REPORT}",
            f"cat > {folder}/spec.new {home.OR_REPORT}",
            f"mv {folder}/spec.new {folder}/spec.json",
        )
        argv = ["/bin/sh", "-c", "\n".join(steps)]
        result = self._transport.run(user, argv, f"{spec}\n".encode(), self._seconds)
        home.check_home(result)
        if result.code != 0:
            raise Unavailable(f"The session's folder could not be created: {result.error_text()}")

    def release(self, user: str, job_id: str) -> None:
        argv = self._limited(commands.release_argv(job_id))
        result = self._transport.run(user, argv, seconds=self._seconds + 5)
        if result.code != 0:
            raise Unavailable(f"Slurm did not release the job: {result.error_text()}")

    def begin(self, user: str, job_id: str, seconds: int) -> None:
        argv = self._limited(commands.begin_argv(job_id, seconds))
        result = self._transport.run(user, argv, seconds=self._seconds + 5)
        if result.code != 0:
            raise Unavailable(f"Slurm did not change the start: {result.error_text()}")

    # As the operator

    @property
    def may_extend(self) -> bool:
        return bool(self._operator)

    def extend(self, job_id: str, minutes: int) -> None:
        argv = commands.extend_argv(job_id, minutes)
        result = self._transport.run(self._operator, argv, seconds=self._seconds)
        if result.code != 0:
            raise Unavailable(f"Slurm did not extend the time: {result.error_text()}")

    # As the reader

    def jobs(self) -> dict[str, Job]:
        text = self._other_queue()
        return self._queue.read(self._ask(queue.squeue_argv()) if text is None else text)

    def find(self, session: str, user: str) -> list[JobReport]:
        jobs = queue.squeue_parse(self._ask(queue.squeue_argv(session, user)))
        return [job.report for job in jobs]

    def named(self, sessions: Collection[str]) -> dict[str, list[JobReport]]:
        return queue.named_parse(self._ask(queue.named_argv(sessions)), sessions)

    def ended(self, job_ids: Collection[str]) -> dict[str, JobReport]:
        ids = sorted(filter(commands.is_job_id, job_ids))
        deadline = time.monotonic() + self._seconds
        reports = halving(self._sacct, ids, deadline)
        return {report.job_id: self._queries.with_canceller(report) for report in reports}

    def _sacct(self, job_ids: Sequence[str]) -> list[JobReport]:
        return self._recorded(accounting.sacct_argv(job_ids))

    def _recorded(self, argv: Sequence[str]) -> list[JobReport]:
        """Accounting's records; [] without accounting, when only the queue shows ends."""
        try:
            return accounting.sacct_parse(self._ask(argv))
        except RefusedError as error:
            if accounting.OFF in error.text:
                return []
            raise

    def ended_named(self, session: str, user: str, since: datetime) -> list[JobReport]:
        # A minute of tolerance: the portal's clock and Slurm's may differ.
        argv = accounting.sacct_named_argv(session, user, since - timedelta(minutes=1))
        return [self._queries.with_canceller(report) for report in self._recorded(argv)]

    def partitions(self) -> list[Partition]:
        return commands.sinfo_parse(self._ask(commands.sinfo_argv()))

    def nodes(self) -> list[Node]:
        return commands.nodes_parse(self._ask(commands.nodes_argv()))

    def limits(self) -> Limits:
        """Limits and rules, by one query of each type for all users."""
        try:
            return self._limits.read()
        except commands.UnexpectedOutput as error:
            raise Unavailable(f"Slurm's limits cannot be read: {error}") from error
