"""sstat's and sacct's figures of a job's steps."""

from __future__ import annotations

import json

import pytest

from portal.adapters.slurm.job_usage import (
    read_bytes,
    read_seconds,
    sacct_argv,
    sacct_parse,
    sstat_argv,
    sstat_parse,
)
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.job import Job
from portal.core.jobs.job_usage import EndedUse, StepUse
from tests.support.measured_jobs import live_step, record
from tests.support.paths import RECORDED
from tests.support.recordings import VERSIONS, recorded


def numbers(version: str) -> dict[str, str]:
    """The numbers of the recorded jobs by kind (tests/record.py)."""
    text = (RECORDED / version / "use-jobs.json").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_steps_on_two_nodes_as_slurm_prints_them(version: str) -> None:
    number = numbers(version)["steps-1"]
    batch, step = sstat_parse(recorded(version, "use-steps-1-sstat"), number)
    assert (batch.id, batch.tasks, batch.peak_node) == ("batch", 1, "n1")
    assert 1 <= (batch.cpu_seconds or 0) <= 20
    assert 40 << 20 <= (batch.memory or 0) <= (batch.peak or 0) <= 100 << 20
    assert (step.id, step.tasks, step.cpu_seconds) == ("0", 2, 0.0)
    assert 0 < (step.peak or 0) <= 1 << 20
    assert (batch.gpu_percent, batch.gpu_memory) == (None, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_record_of_a_job_that_is_over_as_slurm_prints_it(version: str) -> None:
    number = numbers(version)["steps-1"]
    ended = sacct_parse(recorded(version, "use-steps-1-sacct"), number)
    assert ended is not None
    assert (ended.cores, ended.memory_mb) == (2, 200)
    assert 10 <= ended.elapsed <= 60
    batch, step = ended.steps
    assert (batch.id, batch.tasks, step.id, step.tasks) == ("batch", 1, "0", 2)
    assert 1 <= (batch.cpu_seconds or 0) <= ended.elapsed
    assert 40 << 20 <= (batch.peak or 0) <= 100 << 20


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("place", ["1", "2"])
def test_each_task_of_an_array_has_its_own_use(version: str, place: str) -> None:
    """The number of the last task is the array's: sstat prints all tasks for it."""
    number = numbers(version)[f"tasks-{place}"]
    printed = recorded(version, f"use-tasks-{place}-sstat")
    assert len(printed.splitlines()) == (2 if number == numbers(version)["tasks"] else 1)
    (batch,) = sstat_parse(printed, number)
    assert batch.id == "batch"
    ended = sacct_parse(recorded(version, f"use-tasks-{place}-sacct"), number)
    assert ended is not None
    assert [step.id for step in ended.steps] == ["batch"]
    assert ended.cores == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_each_part_of_a_heterogeneous_job_has_its_own_use(version: str) -> None:
    for place, steps, memory in (("1", ["batch", "0"], 100), ("2", ["0"], 50)):
        number = numbers(version)[f"parts-{place}"]
        live = sstat_parse(recorded(version, f"use-parts-{place}-sstat"), number)
        assert [step.id for step in live] == steps
        ended = sacct_parse(recorded(version, f"use-parts-{place}-sacct"), number)
        assert ended is not None
        assert [step.id for step in ended.steps] == steps
        assert ended.memory_mb == memory


def test_running_steps() -> None:
    text = "\n".join([live_step(7, 90, 1000), live_step(7, 3, 20, "extern"), ""])
    assert sstat_parse(text, "7") == [
        StepUse("batch", 1, 90.0, 1000, 1000, "n1"),
        StepUse("extern", 1, 3.0, 20, 20, "n1"),
    ]


def test_a_step_of_several_tasks_on_an_older_slurm() -> None:
    """Without totals, those of all tasks follow from the averages."""
    step = StepUse("0", 4, 40.0, 4 * 1024 * 1024, 2 * 1024 * 1024, "n2")
    assert sstat_parse("7.0|4|00:10.000|1024K|2M|n2|", "7") == [step]


def test_the_use_of_gpus() -> None:
    line = "7.batch|1|00:00:01|1|1|n1|cpu=00:00:01,mem=1,gres/gpumem=2147483648,gres/gpuutil=87"
    [step] = sstat_parse(line, "7")
    assert (step.gpu_percent, step.gpu_memory) == (87.0, 2**31)


@pytest.mark.parametrize(
    "line",
    [
        "", "hello", "8.batch|1|00:01|1|1|n1|", "7|1|00:01|1|1|n1|", "7.x|1|00:01|1|1|n1|",
        "7.batch|1|00:01|1|1|n1", "7.batch|1|00:01|1|1|n1||", "7.batch.0|1|00:01|1|1|n1|",
    ],
)  # fmt: skip
def test_what_is_not_the_jobs_is_left_out(line: str) -> None:
    """A user's shell may print anything."""
    assert sstat_parse(line, "7") == []


def test_forged_figures_stay_figures() -> None:
    line = f"7.batch|-1|{'9' * 40}:00|{'9' * 40}|NaN|<b>|cpu=x,mem=1e99"
    assert sstat_parse(line, "7") == [StepUse("batch")]
    assert len(sstat_parse("7.0|1||||n1|\n" * 5000, "7")) <= 501


def test_a_job_that_is_over() -> None:
    text = "\n".join([*record(8, 1), *record(7, 600, "01:00:00", "1.5G"), ""])
    batch = StepUse("batch", 1, 3600.0, None, 3 * 2**29, "n1")
    assert sacct_parse(text, "7") == EndedUse((batch,), 4, 600.0, 8192)


def test_accounting_that_does_not_have_the_end_yet() -> None:
    unfinished = record(7, 600)[0].replace("1795176000", "Unknown")
    assert sacct_parse(unfinished, "7") is None
    assert sacct_parse("", "7") is None
    assert sacct_parse("\n".join(record(8, 1)), "7") is None


def asked(number: str, array: str = "", tasks: str = "") -> Job:
    """A job to ask about."""
    return Job(JobReport(number, "alice", JobState.RUNNING), array, tasks)


@pytest.mark.parametrize("job_id", ["", "7,8", "7_4;x", "7 --help", "x", "1" * 11])
def test_only_numbers_of_jobs_reach_a_command(job_id: str) -> None:
    for argv in (sstat_argv, sacct_argv):
        with pytest.raises(ValueError, match="invalid job id"):
            argv(asked(job_id))


def test_the_last_task_of_an_array_is_asked_about_alone() -> None:
    """Its number is the array's, and so would stand for all tasks."""
    assert "--jobs=7_12" in sacct_argv(asked("7", "7", "12"))
    assert "--jobs=7" in sacct_argv(asked("7", "7", "0-3%2"))
    assert "--jobs=7" in sacct_argv(asked("7"))
    assert "--jobs=7" in sstat_argv(asked("7", "7", "12"))


def test_the_lines_of_a_thousand_other_tasks_hide_none() -> None:
    others = [line for number in range(100, 1100) for line in record(number, 1)]
    batch = StepUse("batch", 1, 120.0, None, 2**30, "n1")
    assert sacct_parse("\n".join([*others, *record(7, 60)]), "7") == EndedUse(
        (batch,), 4, 60.0, 8192
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("1234", 1234), ("1205K", 1205 * 1024), ("1.50M", 3 * 2**19), ("2G", 2**31),
     ("", None), ("16?", None), ("-1", None), ("1e5", None), ("9" * 30, None),
     ("1023P", 1023 * 2**50), ("1024P", None), ("9" * 18 + "P", None)],
)  # fmt: skip
def test_amounts(text: str, value: int | None) -> None:
    assert read_bytes(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("00:01.250", 1.25), ("01:02:03", 3723.0), ("1-02:03:04", 93784.0), ("", None),
     ("INVALID", None), ("12", None)],
)  # fmt: skip
def test_durations(text: str, value: float | None) -> None:
    assert read_seconds(text) == value
