"""pyslurm's queue as squeue's lines: a recorded queue, in both forms."""

from __future__ import annotations

import io
import pwd
import sys
from types import ModuleType, SimpleNamespace

import pytest

from portal.adapters.slurm import commands, queue
from portal.adapters.slurm.pyslurm import child
from portal.core.cluster.job_reports import JobState
from tests.unit.adapters.slurm.pyslurm.fake_pyslurm import RECORD, replaying


@pytest.fixture(autouse=True)
def accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster's accounts, as its hosts know them."""

    def getpwuid(uid: int) -> SimpleNamespace:
        return SimpleNamespace(pw_name=RECORD["users"][str(uid)])

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    child.user_name.cache_clear()


def test_every_field_is_the_same_as_squeues() -> None:
    squeue = {job.id: job for job in queue.squeue_parse(RECORD["squeue"])}
    ours = {job.id: job for job in queue.squeue_parse("\n".join(child.lines(replaying())))}
    assert len(squeue) > 10
    for id, job in squeue.items():
        assert ours[id] == job
    assert ours.keys() == squeue.keys()


def test_the_recorded_queue_has_jobs_of_every_kind() -> None:
    jobs = queue.squeue_parse(RECORD["squeue"])
    states = {job.report.state for job in jobs}
    assert {JobState.PENDING, JobState.RUNNING, JobState.FAILED, JobState.CANCELLED} <= states
    assert {job.report.user for job in jobs} == {"alice", "bob"}
    assert any(job.tasks and not job.tasks.isdigit() for job in jobs)
    assert any(job.tasks.isdigit() for job in jobs)
    assert any(job.het_offset for job in jobs)
    assert any(job.signal == 9 for job in jobs)
    assert any(job.report.shards for job in jobs)


@pytest.mark.parametrize("minutes", [None, 0, 1, 59, 60, 1439, 1440, 1562, 100_000])
def test_a_time_limit_is_read_as_it_was(minutes: int | None) -> None:
    assert commands.parse_minutes(child.duration(minutes)) == minutes


def test_a_field_cannot_forge_another_one_or_a_line() -> None:
    evil = dict(RECORD["jobs"][0], account="a\x1fb\nc", state_reason=None)
    (job,) = queue.squeue_parse(
        child.line(SimpleNamespace(**evil), RECORD["allocated"][str(evil["id"])])
    )
    assert job.report.account == "a b c"
    assert job.report.reason is None


def test_as_many_fields_as_squeue_prints() -> None:
    first = RECORD["jobs"][0]
    text = child.line(SimpleNamespace(**first), RECORD["allocated"][str(first["id"])])
    assert text.count(child.SEPARATOR) == sum(field.endswith("\x1f") for field in _fields())
    assert child.SEPARATOR == commands.SEPARATOR


def _fields() -> list[str]:
    (format,) = [word for word in queue.squeue_argv() if word.startswith("--Format=")]
    return format.split(",")


def _said(module: ModuleType) -> list[str]:
    return "\n".join(child.answer(module)).split("\n")


def test_an_answer_says_how_many_lines_follow() -> None:
    first, *rest = _said(replaying())
    assert first == f"jobs {len(rest)}"


def test_slurm_does_not_answer() -> None:
    assert _said(replaying("Socket timed\nout")) == ["down Socket timed out"]


def test_a_user_whom_this_host_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECORD, "users", {})
    (first,) = _said(replaying())
    assert first.startswith("unusable this host does not know the user 1001")


def test_without_pyslurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyslurm", None)
    answers = io.StringIO()
    child.main(io.StringIO("jobs\n"), answers)
    assert answers.getvalue().startswith("unusable pyslurm cannot be imported")


def test_another_version_of_pyslurm(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = ModuleType("pyslurm")
    vars(newer).update(__version__="25.11.2", Jobs=dict, RPCError=OSError)
    monkeypatch.setitem(sys.modules, "pyslurm", newer)
    with pytest.raises(child.UnusableError, match=r"25\.11\.2 has no job; 24\.11 is known"):
        child.load()


def test_it_answers_until_the_questions_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyslurm", replaying())
    answers = io.StringIO()
    child.main(io.StringIO("jobs\njobs\n"), answers)
    assert answers.getvalue().count(f"jobs {len(RECORD['jobs'])}\n") == 2
