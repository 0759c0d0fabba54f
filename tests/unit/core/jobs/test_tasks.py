"""Slurm's notation for tasks of an array."""

from __future__ import annotations

import pytest

from portal.core.jobs.tasks import at_once, count_tasks, has_task, shorten


@pytest.mark.parametrize(
    ("tasks", "number"),
    [("4", 1), ("0-19%4", 20), ("1-7:2", 4), ("1,3,5-8", 6), ("0-1,4,...", 3), ("", 1), ("9-1", 1)],
)
def test_tasks_are_counted(tasks: str, number: int) -> None:
    assert count_tasks(tasks) == number


def test_a_step_of_zero_does_no_harm() -> None:
    assert count_tasks("1-3:0") == 3


@pytest.mark.parametrize(
    ("tasks", "task", "found"),
    [("0-19%4", 19, True), ("0-19%4", 20, False), ("1-7:2", 2, False), ("1,2,...", 900, True)],
)
def test_a_task_is_found(tasks: str, task: int, found: bool) -> None:
    assert has_task(tasks, task) is found


@pytest.mark.parametrize(("tasks", "most"), [("0-9%4", 4), ("0-9", None), ("0-9%", None)])
def test_how_many_run_at_once(tasks: str, most: int | None) -> None:
    assert at_once(tasks) == most


def test_a_long_list_is_shown_as_slurms_commands_do() -> None:
    listed = ",".join(map(str, range(0, 200, 3)))
    assert shorten(f"{listed}%3") == (
        "0,3,6,9,12,15,18,21,24,27,30,33,36,39,42,45,48,51,54,57,60,63,...%3"
    )
    assert shorten(listed).endswith(",63,...")
    for short in ("4", "0-19%4", "", "1,3,5-8"):
        assert shorten(short) == short
