"""sstat's and sacct's figures of a job's steps."""

from __future__ import annotations

import pytest

from portal.adapters.slurm.usage import (
    read_bytes,
    read_seconds,
    sacct_argv,
    sacct_parse,
    sstat_argv,
    sstat_parse,
)
from portal.core.jobs.usage import Ended, StepUse
from tests.looked_at_jobs import live_step, record


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
    assert sacct_parse(text, "7") == Ended((batch,), 4, 600.0, 8192)


def test_accounting_that_does_not_have_the_end_yet() -> None:
    unfinished = record(7, 600)[0].replace("1795176000", "Unknown")
    assert sacct_parse(unfinished, "7") is None
    assert sacct_parse("", "7") is None
    assert sacct_parse("\n".join(record(8, 1)), "7") is None


@pytest.mark.parametrize("job_id", ["", "7,8", "7_4", "7 --help", "x", "1" * 11])
def test_only_numbers_of_jobs_reach_a_command(job_id: str) -> None:
    for argv in (sstat_argv, sacct_argv):
        with pytest.raises(ValueError, match="invalid job id"):
            argv(job_id)


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
