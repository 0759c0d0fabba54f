"""Tasks that share a container: none runs before all of the node have come."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest

from portal.node.runner.batch.barrier import local_tasks, wait_for_all


@pytest.mark.parametrize(
    ("counts", "node", "number"),
    [
        ("2,1", "0", 2),
        ("2,1", "1", 1),
        ("3(x2),1", "1", 3),
        ("3(x2),1", "2", 1),
        ("128(x4000000)", "3", 128),
        ("2", "5", 1),
        ("2,x", "0", 1),
        ("", "0", 1),
        ("2", "x", 1),
    ],
)
def test_tasks_of_a_node(counts: str, node: str, number: int) -> None:
    assert local_tasks({"SLURM_STEP_TASKS_PER_NODE": counts, "SLURM_NODEID": node}) == number


def test_without_slurm_there_is_one() -> None:
    assert local_tasks({}) == 1


def task(number: int, tasks: int, step: str) -> dict[str, str]:
    """The environment of a task."""
    return {
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_STEP_ID": step,
        "SLURM_LOCALID": str(number),
        "SLURM_NODEID": "0",
        "SLURM_STEP_TASKS_PER_NODE": str(tasks),
    }


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_all_wait_for_the_last_one(order: tuple[int, ...]) -> None:
    gone: list[int] = []

    def come(number: int) -> None:
        wait_for_all(task(number, 3, f"order{order}"), 20)
        gone.append(number)

    threads = [threading.Thread(target=come, args=(number,)) for number in order]
    for thread in threads[:-1]:
        thread.start()
    time.sleep(0.3)
    assert gone == []
    threads[-1].start()
    for thread in threads:
        thread.join(20)
    assert sorted(gone) == [0, 1, 2]


@pytest.mark.parametrize("number", [0, 1])
def test_a_task_that_never_comes_keeps_nobody_for_ever(number: int) -> None:
    begun = time.monotonic()
    wait_for_all(task(number, 2, f"alone{number}"), 0.3)
    assert 0.25 < time.monotonic() - begun < 5


def test_an_address_that_is_taken_keeps_nobody() -> None:
    environment = task(0, 2, "taken")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"\0slipway-step-{os.getuid()}-{os.getpid()}.taken")
        begun = time.monotonic()
        wait_for_all(environment, 20)
        assert time.monotonic() - begun < 5


def test_nobody_waits_for_another_users_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.node.runner.batch.barrier._is_ours", lambda _: False)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"\0slipway-step-{os.getuid()}-{os.getpid()}.theirs")
        other.listen(1)
        begun = time.monotonic()
        wait_for_all(task(1, 2, "theirs"), 20)
        assert time.monotonic() - begun < 5


def test_a_single_task_waits_for_nobody() -> None:
    begun = time.monotonic()
    wait_for_all(task(0, 1, "single"), 20)
    assert time.monotonic() - begun < 5
