"""Slurm, asked by its commands on the login node: as the user for what changes, else as reader."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from portal.adapters import accounting, commands, folder_commands, key_commands
from portal.adapters.transport import Completed, Transport
from portal.core.folders import Folder, storage_of
from portal.core.job import Estimate, JobReport, Node, Partition
from portal.core.limits import Limits
from portal.core.ssh import find_private_key
from portal.errors import FieldError, InvalidRequest, OutcomeUnknown, Unavailable

# What Slurm's commands say when it is Slurm that fails, not the request (slurm_errno.c).
_DOWN = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Zero Bytes were transmitted",
    "Transport endpoint is not connected",
    "slurmdbd",
    "in a backup controller",
    "slurm_persist_conn",
    "Problem talking to the database",
)

ESTIMATE_SECONDS = 5.0
"""How long Slurm may think about a mere estimate."""

# What scancel says of jobs that are over; it goes on with the others.
_OVER_ALREADY = ("Invalid job id", "already completing")

# Which field of the request Slurm's refusal is about, where its words say so.
_FIELDS = (
    ("generic resource", "resources.fgpu"),
    ("memory", "resources.memory"),
    ("CPU count", "resources.cpus"),
    ("node configuration", "resources"),
    ("partition", "resource_group"),
    ("time limit", "time_limit"),
)


class Slurm:
    """Scheduler over Slurm's command line tools."""

    def __init__(
        self,
        transport: Transport,
        reader: str,
        directory: str,
        seconds: float,
        operator: str = "",
    ) -> None:
        self._transport = transport
        self._reader = reader
        self._operator = operator
        self._directory = directory
        self._seconds = seconds
        self._names: dict[str, str] = {}

    # As the user

    def submit(self, user: str, session: str, spec: str, script: str) -> str:
        """Submit as the user and return the job id.

        One round trip: the first line of standard input becomes the runner's instructions, in a
        file that only the user can read; the rest is the batch script. Making the session's folder
        claims the submission: a second one at the same time fails before it reaches sbatch.
        """
        folder = f"{self._directory}/sessions/{session}"
        sbatch = shlex.join(
            ["timeout", "--kill-after=2", f"{self._seconds:.0f}", *commands.sbatch_argv()]
        )
        steps = (
            "cd && umask 077",
            f"mkdir -p {self._directory}/logs {self._directory}/sessions",
            f"mkdir {folder}",
            # Without a key there is a session all the same.
            f"{{ {key_commands.make_step(self._directory)} || :; }}",
            "IFS= read -r spec",
            f'printf "%s\\n" "$spec" > {folder}/spec.json',
            f"exec env LC_ALL=C.UTF-8 {sbatch}",  # more would travel into the job
        )
        done = self._transport.run(
            user,
            ["/bin/sh", "-c", " && ".join(steps)],
            f"{spec}\n{script}".encode(),
            self._seconds + 5,
        )
        if done.code in (124, 137):  # timeout(1) ended sbatch: Slurm may have heard it
            raise OutcomeUnknown("Slurm took too long to accept the job.")
        if done.code != 0:
            self._transport.run(user, ["rm", "-rf", "--", folder], seconds=self._seconds)
            raise _refusal(done)
        return commands.sbatch_parse(done.stdout.decode(errors="replace"))

    def estimate(self, user: str, script: str) -> Estimate:
        """Slurm's guess when it would start this script's job; nothing is submitted."""
        seconds = min(self._seconds, ESTIMATE_SECONDS)
        argv = ["env", *commands.ENVIRONMENT, "timeout", "--kill-after=1", f"{seconds:.0f}"]
        done = self._transport.run(
            user, [*argv, *commands.estimate_argv()], script.encode(), seconds + 2
        )
        if done.code in (124, 137):
            raise Unavailable("Slurm took too long to estimate a start.")
        if done.code == 0:
            return commands.estimate_parse(done.stderr)
        refusal = _refusal(done)
        if not isinstance(refusal, InvalidRequest):
            raise refusal
        return Estimate(None, "", f"Slurm would not take it: {_words(done)}")

    def cancel(self, user: str, *job_ids: str) -> None:
        """Cancel as the user, all with one command; a job that is over already is fine."""
        done = self._transport.run(user, commands.scancel_argv(*job_ids), seconds=self._seconds)
        said = [line for line in done.stderr.splitlines() if line.strip()]
        wrong = [line for line in said if not any(word in line for word in _OVER_ALREADY)]
        if done.code != 0 and (wrong or not said):
            raise Unavailable(f"Slurm did not cancel the job: {_words(done)}")

    def prepare(self, user: str, session: str, spec: str) -> None:
        """Make the session's folder anew, with new instructions, for a job that Slurm has."""
        folder = f"{self._directory}/sessions/{session}"
        steps = (
            "cd && umask 077",
            f"rm -rf -- {folder}",
            f"mkdir -p {self._directory}/logs {folder}",
            f"cat > {folder}/spec.new",
            f"mv {folder}/spec.new {folder}/spec.json",
        )
        argv = ["/bin/sh", "-c", " && ".join(steps)]
        done = self._transport.run(user, argv, f"{spec}\n".encode(), self._seconds)
        if done.code != 0:
            raise Unavailable(f"The session's folder could not be made: {_words(done)}")

    def release(self, user: str, job_id: str) -> None:
        """Take a hold of the user's own away; a job that is not held is fine."""
        done = self._transport.run(user, commands.release_argv(job_id), seconds=self._seconds)
        if done.code != 0:
            raise Unavailable(f"Slurm did not release the job: {_words(done)}")

    # As the operator

    @property
    def may_extend(self) -> bool:
        """Whether the site has an account for this."""
        return bool(self._operator)

    def extend(self, job_id: str, minutes: int) -> None:
        """Let a running job run so many minutes in all."""
        argv = commands.extend_argv(job_id, minutes)
        done = self._transport.run(self._operator, argv, seconds=self._seconds)
        if done.code != 0:
            raise Unavailable(f"Slurm did not extend the time: {_words(done)}")

    # As the reader

    def jobs(self) -> dict[str, JobReport]:
        """All jobs that Slurm remembers, by job id: one query for everybody."""
        reports = commands.squeue_parse(self._ask(commands.squeue_argv()))
        return {report.job_id: report for report in reports}

    def find(self, session: str, user: str) -> list[JobReport]:
        """The user's jobs that carry this session's name, newest last."""
        return commands.squeue_parse(self._ask(commands.squeue_argv(session, user)))

    def ended(self, job_ids: Collection[str]) -> dict[str, JobReport]:
        """What accounting knows of these jobs; a job it does not know is left out."""
        reports = commands.sacct_parse(self._ask(commands.sacct_argv(job_ids)))
        return {report.job_id: self._named(report) for report in reports}

    def ended_named(self, session: str, user: str, since: datetime) -> list[JobReport]:
        """The user's jobs of this name that accounting knows."""
        # A minute of leeway: the portal's clock and Slurm's may differ.
        argv = commands.sacct_named_argv(session, user, since - timedelta(minutes=1))
        return [self._named(report) for report in commands.sacct_parse(self._ask(argv))]

    def partitions(self) -> list[Partition]:
        """All partitions."""
        return commands.sinfo_parse(self._ask(commands.sinfo_argv()))

    def nodes(self) -> list[Node]:
        """All nodes, once for each of their partitions."""
        return commands.nodes_parse(self._ask(commands.nodes_argv()))

    def limits(self) -> Limits:
        """Who may use how much: five queries, for everybody at once."""
        return accounting.limits(
            accounting.Printed(
                config=self._ask(accounting.config_argv()),
                associations=self._ask(accounting.associations_argv()),
                qos=self._ask(accounting.qos_argv()),
                users=self._ask(accounting.users_argv()),
                entries=self._ask(accounting.entries_argv()),
            )
        )

    def _named(self, report: JobReport) -> JobReport:
        """The same report with the name of whoever cancelled the job: accounting has numbers."""
        number = report.cancelled_by
        if number is None or not number.isdigit():
            return report
        if number not in self._names:
            done = self._transport.run(self._reader, commands.user_argv(number))
            self._names[number] = done.stdout.decode(errors="replace").strip() or number
        return replace(report, cancelled_by=self._names[number])

    def _ask(self, argv: Sequence[str]) -> str:
        words = ["env", *commands.ENVIRONMENT, *argv]
        done = self._transport.run(self._reader, words, seconds=self._seconds)
        if done.code != 0:
            raise Unavailable(f"Slurm does not answer: {_words(done)}")
        return done.stdout.decode(errors="replace")


class HomeFiles:
    """UserFiles over the same transport."""

    def __init__(self, transport: Transport, directory: str, storage: str) -> None:
        self._transport = transport
        self._directory = directory
        self._storage = storage

    def remove_session(self, user: str, session: str) -> None:
        """Delete all that a session left; nothing there is fine."""
        folder = f"{self._directory}/sessions/{session}"
        done = self._transport.run(user, ["rm", "-rf", "--", folder])
        if done.code != 0:
            raise Unavailable(f"The session's files could not be deleted: {_words(done)}")

    def read_log(self, user: str, session: str, offset: int, limit: int) -> bytes:
        """Up to `limit` bytes of the session's log from `offset` on; b"" when there is none."""
        file = f"{self._directory}/logs/{session}.log"
        script = f"[ ! -e {file} ] || tail -c +{offset + 1} {file} | head -c {limit}"
        return self._transport.run(user, ["/bin/sh", "-c", script]).stdout

    def folders(self, user: str) -> list[Folder]:
        """What could be mounted: the home directory, then storage folders by name."""
        done = self._ask(user, folder_commands.list_argv(storage_of(user, self._storage)))
        return folder_commands.list_parse(done.stdout)

    def missing_folders(self, user: str, names: Collection[str]) -> set[str]:
        """Those of these names of storage folders that the user has none of."""
        argv = folder_commands.missing_argv(storage_of(user, self._storage), names)
        return folder_commands.missing_parse(self._ask(user, argv).stdout)

    def make_folder(self, user: str, name: str) -> Folder:
        """Make a storage folder."""
        argv = folder_commands.make_argv(storage_of(user, self._storage), name)
        done = self._transport.run(user, argv)
        if refusal := folder_commands.make_refusal(done):
            raise InvalidRequest([FieldError("folder", refusal)])
        if done.code != 0:
            raise Unavailable(f"The folder could not be made: {_words(done)}")
        return folder_commands.make_parse(done.stdout, name)

    def _ask(self, user: str, argv: Sequence[str]) -> Completed:
        done = self._transport.run(user, argv)
        if done.code != 0:
            raise Unavailable(f"Your folders cannot be looked at right now: {_words(done)}")
        return done

    def log_tail(self, user: str, session: str, lines: int, limit: int) -> bytes:
        """The last lines of the session's log; b"" when there is none."""
        file = f"{self._directory}/logs/{session}.log"
        script = f"[ ! -e {file} ] || tail -n {lines} {file} | tail -c {limit}"
        done = self._transport.run(user, ["/bin/sh", "-c", script])
        if done.code != 0:
            raise Unavailable(f"The session's log could not be read: {_words(done)}")
        return done.stdout

    def container_key(self, user: str, new: bool = False) -> str:
        """The user's private SSH key, which their sessions take; made if there is none, or anew."""
        done = self._transport.run(user, key_commands.key_argv(self._directory, new))
        key = find_private_key(done.stdout.decode(errors="replace"))
        if done.code != 0 or key is None:
            raise Unavailable(f"Your SSH key could not be made: {_words(done)}")
        return key

    def log_size(self, user: str, session: str) -> int:
        """Bytes in the session's log; 0 when there is none."""
        file = f"{self._directory}/logs/{session}.log"
        done = self._transport.run(user, ["stat", "--format=%s", "--", file])
        return int(done.stdout) if done.code == 0 else 0


def _words(done: Completed) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    said = lines[-1] if lines else f"exit code {done.code}"
    return said.removeprefix("sbatch: error: ").removeprefix("allocation failure: ")


def _plugin_words(done: Completed) -> str:
    """What job_submit.lua said of the GPU that was asked for: plainer than Slurm's own error."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("sbatch: error: ")]
    if not lines or "Invalid generic resource" not in lines[-1]:
        return ""
    return " ".join(line.removeprefix("sbatch: error: ") for line in lines[:-1])


def _refusal(done: Completed) -> Exception:
    """Slurm's answer to a submission it did not take."""
    if any(word in done.stderr for word in _DOWN):
        return Unavailable(
            "Slurm does not answer, so nothing can be launched right now. Running sessions are "
            "not affected. Try again in a few minutes."
        )
    text = _plugin_words(done) or _words(done).removeprefix("Batch job submission failed: ")
    said = done.stderr.lower()
    field = next((name for word, name in _FIELDS if word.lower() in said), "")
    return InvalidRequest([FieldError(field, f"Slurm refused it: {text}")])
