"""Slurm's jobs on the login node: questions about them, and commands for each of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.adapters.slurm.jobs import SlurmJobs
from portal.adapters.ssh.transport import Completed
from portal.core.cluster.jobs import JobState
from portal.core.jobs.actions import JobAction
from portal.errors import Unavailable
from tests.fakes import FakeClock, FakeJob, FakeSlurm
from tests.unit.adapters.slurm.test_client import Replay


def login_node() -> tuple[FakeSlurm, SlurmJobs]:
    """A login node with two jobs."""
    node = FakeSlurm(FakeClock())
    node.jobs = [
        FakeJob(1, "alice", "one\n2", "", "", state="RUNNING", start=5, node="n1"),
        FakeJob(2, "bob", "two", "", "", state="FAILED", code=3, start=5, end=9, node="n1"),
    ]
    return node, SlurmJobs(node, "slipway", 20)


def test_one_job_as_it_is_now() -> None:
    node, slurm = login_node()
    found = slurm.find("1")
    assert found is not None
    assert (found.report.user, found.report.state) == ("alice", JobState.RUNNING)
    node.forgotten.add(1)
    assert slurm.find("1") is None
    assert slurm.find("1;id") is None
    refused = Replay(Completed(1, b"", "slurm_load_jobs error: Invalid job id specified\n"))
    assert SlurmJobs(refused, "slipway", 20).find("9") is None


def test_texts_are_asked_for_by_standard_input() -> None:
    node, slurm = login_node()
    assert slurm.texts(["1", "7"])["1"].name == "one\n2"
    assert "<" not in node.commands[-1]


def test_whole_records() -> None:
    node, slurm = login_node()
    found = slurm.ended(["2", "x"])
    assert list(found) == ["2"]
    assert found["2"].report.exit_code == 3
    node.jobs[1].state = "CANCELLED by 1003"
    assert slurm.ended(["2"])["2"].report.cancelled_by == "carol"
    span = node.clock.now - timedelta(days=1), node.clock.now
    assert [job.id for job in slurm.history(*span)] == ["1", "2"]


def test_an_older_accounting_has_no_paths_of_output() -> None:
    refusal = Completed(1, b"", 'sacct: fatal: Invalid field requested: "StdOut"\n')
    transport = Replay(refusal, Completed(0, b"", ""), Completed(0, b"", ""))
    slurm = SlurmJobs(transport, "slipway", 20)
    assert slurm.ended(["1"]) == {}
    assert slurm.ended(["1"]) == {}
    fields = ["StdOut" in " ".join(words) for words in transport.asked]
    assert fields == [True, False, False]


def test_without_accounting_no_job_is_known_and_nothing_is_asked_twice() -> None:
    off = Completed(1, b"", "Slurm accounting storage is disabled\n")
    transport = Replay(off)
    slurm = SlurmJobs(transport, "slipway", 20)
    assert slurm.ended([str(number) for number in range(1, 201)]) == {}
    now = datetime(2026, 11, 23, tzinfo=UTC)
    assert slurm.history(now - timedelta(days=7), now) == []
    assert len(transport.asked) == 2


@pytest.mark.parametrize(
    ("printed", "outcome"),
    [
        ("4 0 \n", ""),
        ("4 1 Invalid job id specified for job 4\n", "Invalid job id specified for job 4"),
        ("4 1 slurm_suspend error:Job has already finished|x\n", "Job has already finished"),
        ("4 1 4_[0]: Job has already finished|4_[1-4]: No error\n", ""),
        ("4 1 \n", "it does not say why"),
        ("4 1 a\x1b[2Jb\n", "a [2Jb"),
    ],
)
def test_the_answer_for_each_job(printed: str, outcome: str) -> None:
    transport = Replay(Completed(0, f"noise\n5 0 \n{printed}".encode(), ""))
    slurm = SlurmJobs(transport, "slipway", 20)
    assert slurm.act("alice", JobAction.HOLD, ["4", "4; rm -rf /", "--uid"]) == {"4": outcome}
    assert transport.users == ["alice"]
    assert transport.asked[0][-3:] == ["sh", "hold", "4"]


def test_no_answer_is_no_success() -> None:
    slurm = SlurmJobs(Replay(Completed(124, b"", "")), "slipway", 20)
    with pytest.raises(Unavailable, match="took too long"):
        slurm.act("alice", JobAction.HOLD, ["4"])
    assert slurm.act("alice", JobAction.HOLD, []) == {}
