"""The probes' jobs: submitted, followed, and ended in every case."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from portal.adapters.slurm.client import Slurm
from portal.adapters.ssh.home_files import HomeFiles
from portal.cli.checks.session import SessionCheck, Site
from portal.cli.checks.try_sessions import remove
from portal.cli.findings import Finding
from portal.core.cluster.limits import PartitionAccess
from portal.core.session_job.description import JobSettings
from tests.support.clock import FakeClock
from tests.support.paths import ROOT
from tests.support.slurm import FakeSlurm

MAIN = PartitionAccess("main")
TEMPLATE = (ROOT / "templates" / "job" / "session.sh.j2").read_text()
RULES = JobSettings(
    template=TEMPLATE,
    toolkit="/srv/toolkit.sqsh",
    directory=".slipway",
    callback="https://portal:8443",
    gateway_ports=(0, 0),
    heartbeat_seconds=10,
    storage="storage",
)
FACTS = b"slipway-check node n1\nslipway-check apptainer missing\nslipway-check done yes\n"


@dataclass
class Machine:
    """A cluster on which something happens whenever the check pauses."""

    slurm: FakeSlurm = field(default_factory=lambda: FakeSlurm(FakeClock()))
    happens: Callable[[FakeSlurm], object] = lambda _slurm: None

    def check(self) -> SessionCheck:
        """A check as alice."""
        files = HomeFiles(self.slurm, ".slipway", "storage")
        site = Site(
            scheduler=Slurm(self.slurm, "slipway", ".slipway", 20, ""),
            read_log=files.log_tail,
            remove=partial(remove, self.slurm, ".slipway"),
            resolve=lambda _node: "127.0.0.1",
            rules=RULES,
            image="/srv/images/image.sif",
            callback_ca="-----BEGIN CERTIFICATE-----",
            client_ca="-----BEGIN CERTIFICATE-----",
            clock=lambda: self.slurm.clock().timestamp(),
            sleep=self._sleep,
        )
        return SessionCheck(site, "alice")

    def _sleep(self, seconds: float) -> None:
        self.slurm.clock.advance(seconds=seconds)
        self.happens(self.slurm)

    def run(self, *partitions: PartitionAccess) -> list[Finding]:
        """All findings."""
        return list(self.check().run(partitions or (MAIN,)))

    def nothing_left(self) -> bool:
        """Whether no job lives and no folder is left."""
        live = [job for job in self.slurm.jobs if job.state in ("PENDING", "RUNNING")]
        return not live and self.slurm.folders == set()


def runs(slurm: FakeSlurm) -> None:
    """Jobs start, print their facts and end."""
    for job in slurm.jobs:
        if job.state == "PENDING":
            slurm.start(job)
        elif job.state == "RUNNING":
            slurm.log = FACTS
            slurm.finish(job, "COMPLETED")


def test_the_job_is_a_sessions_with_a_preamble() -> None:
    machine = Machine(happens=runs)
    findings = machine.run()
    (job,) = machine.slurm.jobs
    assert job.user == "alice" and job.name.startswith("check-")
    begin, _, rest = job.script.partition("say node")
    assert "#SBATCH --time=1" in begin and "#SBATCH" not in rest
    assert "/opt/slipway/bin/runner" in rest and "#SBATCH --mem=512M" in begin
    spec = json.loads(job.spec)
    assert spec["apps"] == [] and spec["probe"] not in job.script
    assert findings[0].text.startswith("main (n1): Apptainer was not found")
    assert not findings[0].ok
    assert machine.nothing_left()


def test_what_cannot_be_tried() -> None:
    machine = Machine()
    machine.slurm.refuse = "Invalid account or account/partition combination specified"
    findings = machine.run(
        MAIN,
        PartitionAccess("root", root_only=True),
        PartitionAccess("drained", state="DRAIN"),
        PartitionAccess("big", least_nodes=2),
        PartitionAccess("reserved", requires_reservation=True),
    )
    texts = [one.text for one in findings]
    assert findings[0].warning and "main: not tried, Slurm refuses alice" in texts[0]
    assert texts[1:5] == [
        "root: not tried, it is for root only",
        "drained: not tried, it is DRAIN",
        "big: not tried, it gives 2 nodes at least",
        "reserved: not tried, it needs a reservation",
    ]
    assert not findings[5].ok and "no job of alice started" in texts[5]
    assert machine.slurm.jobs == []


def test_a_job_that_waits_is_said_to_wait_and_cancelled() -> None:
    machine = Machine()

    def wait(slurm: FakeSlurm) -> None:
        slurm.jobs[0].reason = "Resources"

    machine.happens = wait
    findings = machine.run()
    assert findings[0] == Finding(
        True, "main: waits (Resources); nothing was tried there", warning=True
    )
    assert machine.nothing_left()


def interrupt(_slurm: FakeSlurm) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_ends_the_jobs() -> None:
    machine = Machine(happens=interrupt)
    with pytest.raises(KeyboardInterrupt):
        machine.run(MAIN, PartitionAccess("short"))
    assert len(machine.slurm.jobs) == 2
    assert machine.nothing_left()


def test_what_a_cancelled_job_creates_while_it_ends_is_removed() -> None:
    """Its log remained: its node had just begun to start it."""
    machine = Machine()
    rounds = 0

    def go_on(slurm: FakeSlurm) -> None:
        nonlocal rounds
        rounds += 1
        (job,) = slurm.jobs
        job.state = "COMPLETING" if rounds < 3 else "CANCELLED"
        slurm.folders.add(f"/home/alice/.slipway/sessions/{job.name}")

    def interrupted(slurm: FakeSlurm) -> None:
        machine.happens = go_on
        slurm.jobs[0].state = "COMPLETING"
        raise KeyboardInterrupt

    machine.happens = interrupted
    with pytest.raises(KeyboardInterrupt):
        machine.run()
    assert rounds == 3
    assert machine.nothing_left()


def test_a_reader_that_stops_reading_ends_the_jobs() -> None:
    machine = Machine()
    machine.slurm.refuse = ""
    findings = machine.check().run([MAIN, PartitionAccess("root", root_only=True)])
    next(findings)
    findings.close()
    assert machine.nothing_left()


def test_a_submission_whose_answer_was_lost_is_found_and_cancelled() -> None:
    machine = Machine()
    machine.slurm.lose_answer = True
    findings = machine.run()
    assert "main: the job could not be submitted" in findings[0].text
    assert len(machine.slurm.jobs) == 1
    assert machine.nothing_left()


def test_a_silent_slurm_is_reported_and_nothing_waits_for_ever() -> None:
    machine = Machine()

    def goes_down(slurm: FakeSlurm) -> None:
        slurm.down = True

    machine.happens = goes_down
    findings = machine.run()
    assert not findings[0].ok and "does not answer" in findings[0].text


def test_a_log_that_cannot_be_read() -> None:
    machine = Machine()

    def runs_silently(slurm: FakeSlurm) -> None:
        runs(slurm)
        slurm.log = b""

    machine.happens = runs_silently
    (one,) = machine.run()
    assert not one.ok
    assert "its log cannot be read here: is alice's home directory the same" in one.text
