"""`slipway check --session`: a job of a minute in each partition tests a session's start.

The job runs the usual session script, whose runner performs tests instead of starting apps.
"""

from __future__ import annotations

import json
import logging
import secrets
import socket
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

from portal.adapters.slurm.refusals import REFUSED
from portal.cli.checks.node_facts import PREAMBLE, Expected, judge, read_facts
from portal.cli.findings import Finding, warn
from portal.core.cluster.choice.access import CLOSED
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.cluster.limits import PartitionAccess
from portal.core.interfaces.systems import Scheduler
from portal.core.session_job.batch_script import render_script
from portal.core.session_job.description import JobDescription, JobSettings
from portal.errors import InvalidRequest, PortalError

log = logging.getLogger(__name__)

MEMORY_MB = 512
MINUTES = 1
WAIT_SECONDS = 60.0
"""How long a job may wait in the queue before that is reported."""
CALL_SECONDS = 25
"""How long the job waits for the portal's call."""
POLL_SECONDS = 2.0
LATE_SECONDS = 6.0
"""Time limit for the result of an interrupted submission, and for a log after its job's end."""
LOG_BYTES = 16 * 1024


@dataclass
class Probe:
    """The job of one partition, and its results."""

    name: str
    partition: str
    word: str
    submitted: float
    job: JobReport | None = None
    facts: dict[str, str] = field(default_factory=dict)
    log: bytes = b""
    called: bool = False
    call_problem: str = ""
    over_since: float | None = None


@dataclass(frozen=True)
class Site:
    """Functions and settings of the portal that probes use."""

    scheduler: Scheduler
    read_log: Callable[[str, str, int], bytes]
    """The last bytes of a session's log, by user and name."""
    remove: Callable[[str, str], object]
    """Remove a probe's folder and log."""
    resolve: Callable[[str], str]
    """A node's address."""
    rules: JobSettings
    image: str
    callback_ca: str
    client_ca: str
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep


class SessionCheck:
    """The probes of one run; `end` removes all remaining jobs and files."""

    def __init__(self, site: Site, user: str) -> None:
        self._site = site
        self._user = user
        self._probes: list[Probe] = []
        self._submitting = ""

    def run(self, partitions: Sequence[PartitionAccess]) -> Generator[Finding, None, None]:
        """Submit to all partitions and report each as soon as its job is over."""
        tried = False
        try:
            for entry in partitions:
                yield from self._submit(entry)
            while self._probes:
                for probe in list(self._probes):
                    findings = self._poll(probe)
                    if findings is None:
                        continue
                    tried |= probe.job is not None and probe.job.state is not JobState.PENDING
                    yield from findings
                    self._probes.remove(probe)
                    self._remove(probe.name)
                if self._probes:
                    self._site.sleep(POLL_SECONDS)
        finally:
            self.end()
        if not tried:
            text = f"no job of {self._user} started in any partition, so no node was tried"
            yield Finding(False, text)

    def end(self) -> None:
        """Cancel the remaining jobs, also one whose submission was interrupted."""
        names = [probe.name for probe in self._probes]
        self._probes = []
        self._remove(*names)
        self._end_interrupted()

    def _end_interrupted(self) -> None:
        """Cancel the job of a submission whose answer was lost, once it appears."""
        name, self._submitting = self._submitting, ""
        late = self._site.clock() + LATE_SECONDS
        while name and not self._remove(name) and self._site.clock() < late:
            self._site.sleep(1)

    def _submit(self, entry: PartitionAccess) -> Iterator[Finding]:
        name = entry.name
        if reason := _closed(entry):
            yield Finding(True, f"{name}: not tried, {reason}")
            return
        id = f"check-{secrets.token_hex(13)}"
        word = secrets.token_hex(16)
        try:
            script = self._script(id, name)
            self._submitting = id
            self._site.scheduler.submit(self._user, id, self._instructions(word), script)
        except InvalidRequest as error:
            message = error.errors[0].message.removeprefix(REFUSED)
            yield warn(f"{name}: not tried, Slurm refuses {self._user}: {message}")
        except (PortalError, ValueError) as error:
            yield Finding(False, f"{name}: the job could not be submitted: {error}")
            self._end_interrupted()
        else:
            self._probes.append(Probe(id, name, word, self._site.clock()))
        self._submitting = ""

    def _script(self, id: str, partition: str) -> str:
        rules = self._site.rules
        job = JobDescription(
            session=id,
            user=self._user,
            cpus=1,
            memory_mb=MEMORY_MB,
            partition=partition,
            time_limit=MINUTES,
            image=self._site.image,
            toolkit=rules.toolkit,
            directory=rules.directory,
        )
        lines = render_script(job, rules.template).split("\n")
        last = max(n for n, line in enumerate(lines) if line.startswith("#SBATCH "))
        return "\n".join([*lines[: last + 1], PREAMBLE, *lines[last + 1 :]])

    def _instructions(self, word: str) -> str:
        rules = self._site.rules
        return json.dumps(
            {
                "probe": word,
                "wait_seconds": CALL_SECONDS,
                "session": "0" * 32,
                "token": secrets.token_hex(16),
                "callback": rules.callback,
                "callback_ca": self._site.callback_ca,
                "client_ca": self._site.client_ca,
                "ports": list(rules.gateway_ports),
                "heartbeat_seconds": rules.heartbeat_seconds,
                "apps": [],
            }
        )

    def _poll(self, probe: Probe) -> list[Finding] | None:
        """Poll one probe; returns findings when it is over, waits too long, or is lost."""
        now = self._site.clock()
        try:
            reports = self._site.scheduler.find(probe.name, self._user)
        except PortalError as error:
            if now - probe.submitted < WAIT_SECONDS:
                return None
            return [Finding(False, f"{probe.partition}: {error.text}")]
        probe.job = max(reports, key=lambda job: int(job.job_id)) if reports else probe.job
        if probe.job is None or probe.job.state in (JobState.PENDING, JobState.CONFIGURING):
            if now - probe.submitted < WAIT_SECONDS:
                return None
            reason = probe.job.reason if probe.job else "Slurm's queue does not show the job"
            text = f"{probe.partition}: waits ({reason}); nothing was tried there"
            return [warn(text)]
        self._read(probe)
        if "port" in probe.facts and not probe.called and not probe.job.state.over:
            self._call(probe)
        if probe.job.state.over or not reports:
            probe.over_since = probe.over_since or now
            # A network file system shows the end of the log later than the job's end.
            if "done" in probe.facts or now - probe.over_since > LATE_SECONDS:
                return self._judged(probe)
        return None

    def _read(self, probe: Probe) -> None:
        try:
            probe.log = self._site.read_log(self._user, probe.name, LOG_BYTES) or probe.log
        except PortalError as error:
            log.debug("the log of %s: %s", probe.name, error)
        probe.facts = read_facts(probe.log)
        probe.called = probe.called or probe.facts.get("called") == "yes"

    def _call(self, probe: Probe) -> None:
        assert probe.job is not None  # noqa: S101  # it runs
        try:
            address = self._site.resolve(probe.job.nodes[0])
            endpoint = address, int(probe.facts["port"])
            with socket.create_connection(endpoint, timeout=3) as stream:
                stream.settimeout(3)
                stream.sendall(probe.word.encode())
                probe.called = stream.recv(64) == probe.word.encode()
            probe.call_problem = "" if probe.called else "another program answers there"
        except (OSError, ValueError, IndexError, PortalError) as error:
            probe.call_problem = str(error)

    def _judged(self, probe: Probe) -> list[Finding]:
        assert probe.job is not None  # noqa: S101  # it has been over
        rules = self._site.rules
        expected = Expected(
            MEMORY_MB, rules.callback, probe.called, probe.call_problem, rules.gateway_ports
        )
        node = probe.facts.get("node") or ", ".join(probe.job.nodes) or "unknown node"
        target = f"{probe.partition} ({node})"
        if not probe.log.strip():
            text = (
                f"{target}: the job ended as {probe.job.state} and its log cannot be read here: is "
                f"{self._user}'s home directory the same on node and login node, and not full?"
            )
            return [Finding(False, text)]
        findings = judge(probe.facts, probe.log, probe.job.exit_code, expected)
        return [Finding(f.ok, f"{target}: {f.text}", f.warning) for f in findings]

    def _remove(self, *names: str) -> bool:
        """Cancel probes' jobs and remove their files; False if Slurm has no job of these names."""
        try:
            reports = self._reports(names)
            if live := [job.job_id for job in reports if not job.state.over]:
                self._site.scheduler.cancel(self._user, *live)
                self._wait_for_ends(names)
            for name in names:
                self._site.remove(self._user, name)
        except PortalError as error:
            jobs = ", ".join(names)
            log.warning("jobs of %s are left, for %d minute: %s: %s", self._user, 1, jobs, error)
            return True
        return bool(reports)

    def _wait_for_ends(self, names: Sequence[str]) -> None:
        """Wait until these are over: one that is just starting creates its log even now."""
        late = self._site.clock() + LATE_SECONDS
        while self._site.clock() < late:
            if all(job.state.over for job in self._reports(names)):
                return
            self._site.sleep(1)

    def _reports(self, names: Sequence[str]) -> list[JobReport]:
        find = self._site.scheduler.find
        return [report for name in names for report in find(name, self._user)]


def _closed(entry: PartitionAccess) -> str:
    """Why the partition cannot run sessions; "" if it can."""
    if entry.state in CLOSED:
        return f"it is {entry.state}"
    if entry.root_only:
        return "it is for root only"
    if entry.requires_reservation:
        return "it needs a reservation"
    return f"it gives {entry.least_nodes} nodes at least" if entry.least_nodes > 1 else ""
