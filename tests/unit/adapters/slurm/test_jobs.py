"""Slurm's jobs on the login node: questions about them, and commands for each of them."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from portal.adapters.slurm.jobs import SlurmJobs
from portal.adapters.ssh.transport import Completed
from portal.core.cluster.job_reports import JobState
from portal.core.jobs.actions import JobAction
from portal.core.jobs.job import JobTexts
from portal.errors import Unavailable
from tests.support.clock import FakeClock
from tests.support.slurm import FakeJob, FakeSlurm
from tests.support.transports import ReplayTransport


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
    refused = ReplayTransport(
        Completed(1, b"", "slurm_load_jobs error: Invalid job id specified\n")
    )
    assert SlurmJobs(refused, "slipway", 20).find("9") is None


def test_an_answer_that_cannot_be_read_is_slurms_failure() -> None:
    unreadable = ReplayTransport(Completed(0, b"1\x1fnonsense\n", ""))
    with pytest.raises(Unavailable, match="cannot be read"):
        SlurmJobs(unreadable, "slipway", 20).find("1")


def test_a_refusal_for_another_reason_does_not_make_a_job_unknown() -> None:
    words = "squeue: fatal: Unable to process configuration file\n"
    slurm = SlurmJobs(ReplayTransport(*[Completed(1, b"", words)] * 2), "slipway", 20)
    with pytest.raises(Unavailable, match="configuration file"):
        slurm.find("1")
    with pytest.raises(Unavailable, match="configuration file"):
        slurm.texts(["1"])


def test_texts_of_the_only_job_that_has_left_are_none() -> None:
    refused = ReplayTransport(
        Completed(1, b"", "slurm_load_jobs error: Invalid job id specified\n")
    )
    assert SlurmJobs(refused, "slipway", 20).texts(["1"]) == {}


def test_lists_of_tasks_are_asked_for_in_full() -> None:
    transport = ReplayTransport(Completed(0, b"", ""))
    SlurmJobs(transport, "slipway", 20).find("1")
    assert transport.asked[0][:5] == [
        "env", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0", "LC_ALL=C.UTF-8"
    ]  # fmt: skip


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


FACTS = "\x1f".join(
    ["1", "bob", "FAILED", "n1", "1", "2", "3", "3:9", "1", "main", "a", "q", "", "", "5", "1"]
)


def test_an_older_accounting_has_no_paths_of_output() -> None:
    facts = Completed(0, FACTS.encode(), "")
    refusal = Completed(1, b"", 'sacct: fatal: Invalid field requested: "StdOut"\n')
    nothing = Completed(0, b"", "")
    transport = ReplayTransport(facts, refusal, *(nothing, facts) * 5, nothing)
    slurm = SlurmJobs(transport, "slipway", 20)
    for _ in range(2):
        assert slurm.ended(["1"])["1"].report.exit_code == 3
    fields = ["StdOut" in " ".join(words) for words in transport.asked]
    assert fields == [False, True, *[False] * 11]


def test_an_answer_that_may_be_forged_names_no_job(caplog: pytest.LogCaptureFixture) -> None:
    answers = Completed(0, FACTS.encode(), ""), Completed(0, b"1 x 1 y", "")
    transport = ReplayTransport(*answers, *answers, *answers)
    job = SlurmJobs(transport, "slipway", 20).ended(["1"])["1"]
    assert (job.report.user, job.texts) == ("bob", JobTexts())
    assert len(transport.asked) == 6
    assert "answers do not have the fields of 1 jobs" in caplog.text


def test_without_accounting_no_job_is_known_and_nothing_is_asked_twice() -> None:
    off = Completed(1, b"", "Slurm accounting storage is disabled\n")
    transport = ReplayTransport(off)
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
    transport = ReplayTransport(Completed(0, f"noise\n5 0 \n{printed}".encode(), ""))
    slurm = SlurmJobs(transport, "slipway", 20)
    assert slurm.act("alice", JobAction.HOLD, ["4", "4; rm -rf /", "--uid"]) == {"4": outcome}
    assert transport.users == ["alice"]
    assert transport.asked[0][-3:] == ["sh", "hold", "4"]


def test_what_a_shell_prints_is_cut_before_it_is_searched() -> None:
    """Over 256 KB of "slurm_" the search for Slurm's prefixes took more than a minute."""
    printed = Completed(0, b"4 1 " + b"slurm_" * 43_000 + b"\n", "")
    begun = time.monotonic()
    answer = SlurmJobs(ReplayTransport(printed), "slipway", 20).act("bob", JobAction.HOLD, ["4"])
    assert time.monotonic() - begun < 1
    assert answer == {"4": ("slurm_" * 40)[:200]}


def test_no_answer_is_no_success() -> None:
    slurm = SlurmJobs(ReplayTransport(Completed(124, b"", "")), "slipway", 20)
    with pytest.raises(Unavailable, match="took too long"):
        slurm.act("alice", JobAction.HOLD, ["4"])
    assert slurm.act("alice", JobAction.HOLD, []) == {}
