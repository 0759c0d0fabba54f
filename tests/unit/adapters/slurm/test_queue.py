"""One poll of the queue: real output of both versions, and 50,000 jobs."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from portal.adapters.slurm.commands import SEPARATOR, UnexpectedOutput
from portal.adapters.slurm.queue import (
    QueueReader,
    named_argv,
    named_parse,
    squeue_argv,
    squeue_parse,
)
from portal.core.cluster.job_reports import JobState, is_unlimited
from portal.core.jobs.job import Job
from portal.core.jobs.tasks import count_tasks, has_task
from tests.record import LONG, NAME
from tests.support.paths import RECORDED
from tests.support.recordings import VERSIONS, recorded


def jobs_of(version: str) -> tuple[dict[str, str], dict[str, Job]]:
    """The numbers of the recorded jobs by kind, and the jobs (tests/record.py)."""
    roles = json.loads((RECORDED / version / "jobs-others.json").read_text(encoding="utf-8"))
    return roles, {job.id: job for job in squeue_parse(recorded(version, "jobs-squeue"))}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_array_is_its_tasks_that_run_and_one_record_for_the_others(version: str) -> None:
    roles, jobs = jobs_of(version)
    array = roles["array"]
    waiting = jobs[array]
    assert (waiting.array_id, waiting.tasks) == (array, "2-5%2")
    assert waiting.shown_id == f"{array}_[2-5%2]"
    assert waiting.report.reason == "JobArrayTaskLimit"
    running = [job for job in jobs.values() if job.array_id == array and job.id != array]
    assert sorted(job.shown_id for job in running) == [f"{array}_0", f"{array}_1"]
    assert {job.report.state for job in running} == {JobState.RUNNING}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_long_list_of_tasks_is_read_in_full_and_shown_in_short(version: str) -> None:
    text = (RECORDED / version / "use-jobs.json").read_text(encoding="utf-8")
    jobs = {job.id: job for job in squeue_parse(recorded(version, "use-squeue"))}
    waiting = jobs[json.loads(text)["long"]]
    assert waiting.tasks == f"{LONG}%3".replace("0,1,4", "0-1,4")
    assert (count_tasks(waiting.tasks), has_task(waiting.tasks, 900)) == (32, True)
    assert has_task(waiting.tasks, 901) is False
    assert waiting.shown_id.endswith(",...%3]")
    assert len(waiting.shown_id) < 90


@pytest.mark.parametrize("version", VERSIONS)
def test_parts_of_a_heterogeneous_job(version: str) -> None:
    roles, jobs = jobs_of(version)
    parts = [job.shown_id for job in jobs.values() if job.het_id == roles["het"]]
    assert sorted(parts) == [f"{roles['het']}+0", f"{roles['het']}+1"]
    alone = jobs[roles["errors"]]
    assert (alone.array_id, alone.tasks, alone.het_id, alone.shown_id) == ("", "", "", alone.id)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_signal_that_ended_a_job(version: str) -> None:
    roles = json.loads((RECORDED / version / "jobs.json").read_text(encoding="utf-8"))
    jobs = {job.id: job for job in squeue_parse(recorded(version, "squeue"))}
    assert jobs[roles["cancelled"]].signal == 15
    assert jobs[roles["failed"]].signal is None
    assert jobs[roles["oom"]].signal is None  # 125 is Slurm's mark, not a signal


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_cancelled_before_its_start_has_none(version: str) -> None:
    over = [job for job in squeue_parse(recorded(version, "squeue")) if job.report.state.over]
    assert over
    assert all((job.report.start is None) == (not job.report.nodes) for job in over)


def _line(state: str, start: str, end: str, limit: str) -> str:
    fields = ("7", "alice", state, "None", "n1", "1", start, end, "0:0", "main")
    more = ("1", "a", "q", "cpu=1", limit, "0", "7", "N/A", "N/A", "N/A")
    return "".join(field + SEPARATOR for field in (*fields, *more))


def test_a_start_beyond_a_year_is_unknown() -> None:
    now = int(datetime.now(UTC).timestamp())
    for start, known in (
        (now + 300 * 86400, True),
        (now + 370 * 86400, False),
        (66207628800, False),
    ):
        job = squeue_parse(_line("PENDING", str(start), "N/A", "30:00"))[0]
        assert (job.report.start is not None) == known


def test_a_job_without_a_limit_has_no_deadline() -> None:
    """Slurm tells an end in a year."""
    far = str(int(datetime.now(UTC).timestamp()) + 365 * 86400)
    report = squeue_parse(_line("RUNNING", "1000000000", far, "UNLIMITED"))[0].report
    assert (report.time_limit, report.deadline, is_unlimited(report)) == (None, None, True)
    report = squeue_parse(_line("RUNNING", "1000000000", far, "30:00"))[0].report
    assert report.deadline is not None
    assert not is_unlimited(report)


def test_no_text_of_users_is_asked_for() -> None:
    words = " ".join(squeue_argv())
    for field in ("Name:", "Comment", "WorkDir", "Command", "STDOUT", "Dependency"):
        assert field not in words.replace("UserName", "")


def line(number: int, state: str = "PENDING", priority: int = 5) -> str:
    """A line of squeue."""
    words = [
        str(number), "bob", state, "Priority", "", "1", "N/A", "N/A", "0:0", "main", str(priority),
        "research", "normal", "cpu=1,mem=1G", "1:00:00", "0", str(number), "N/A", "N/A", "N/A", "",
    ]  # fmt: skip
    return SEPARATOR.join(words)


def test_only_lines_that_changed_are_parsed_again() -> None:
    reader = QueueReader()
    lines = [line(number) for number in range(1, 50_001)]
    first = reader.read("\n".join([*lines, ""]))
    assert len(first) == 50_000
    lines[7] = line(8, priority=9)
    del lines[100]
    lines.append(line(60_000))
    second = reader.read("\n".join([*lines, ""]))
    changed = {number for number, job in second.items() if first.get(number) is not job}
    assert changed == {"8", "60000"}
    assert second["8"].report.priority == 9
    assert first.keys() - second.keys() == {"101"}
    assert reader.read("\n".join([*lines, ""])) == second


def test_a_job_is_known_as_long_as_one_of_its_lines_is_listed() -> None:
    reader = QueueReader()
    lines = [line(1), line(1, priority=2), line(2)]
    polls = [lines, lines[1:], lines, lines[:1], lines, lines[2:], lines, []]
    for poll in polls:
        queue = reader.read("\n".join([*poll, ""]))
        assert set(queue.values()) <= set(squeue_parse("\n".join(poll)))
        assert queue.keys() == {text.partition(SEPARATOR)[0] for text in poll}


def test_an_unreadable_poll_changes_nothing() -> None:
    reader = QueueReader()
    first = reader.read(line(1) + "\n")
    with pytest.raises(UnexpectedOutput):
        reader.read(line(1) + "\n" + "2\x1f\n")
    assert reader.read(line(1) + "\n")["1"] is first["1"]


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_of_several_names(version: str) -> None:
    """squeue filters by names, but adds jobs that have none."""
    other = "f" * 32
    (words,) = [word for word in named_argv([NAME, other]) if word.startswith("--name")]
    assert words == f"--name={NAME},{other}"
    line = recorded(version, "squeue-named")
    text = "".join(f"{name}{SEPARATOR}{line}" for name in (NAME, "(null)", f"{NAME}  "))
    reports = named_parse(text, [NAME, other])
    assert [report.user for report in reports[NAME]] == ["alice", "alice"]
    assert (reports[other], len(reports)) == ([], 2)
