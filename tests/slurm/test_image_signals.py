"""Signals of jobs in images, beside the same jobs without one: what the script sees is the same."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.slurm.batch import Batch, End
from tests.support.cluster import Cluster, wait_for

PYTHON = """#!/usr/bin/env python3
import os, signal, sys
awaited = signal.valid_signals() - {signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
print("up", flush=True)
while True:
    number = signal.sigwait(awaited)
    if number == signal.SIGTERM:
        sys.exit(4)
    print("got", int(number), flush=True)
"""
SHELL = """#!/bin/bash
trap 'echo got 10' USR1
trap 'echo got 12' USR2
trap 'echo got 18' CONT
trap 'exit 4' TERM
echo up
while :; do sleep 0.05; done
"""
SCRIPTS = {"python": PYTHON, "shell": SHELL}
WAYS = {"sbatch": ("sbatch",), "image": ("slipway", "sbatch", "--image=python/3.13")}
LEFT = """#!/bin/bash
(while :; do date > /dev/null; sleep 0.2; done) &
(setsid bash -c 'trap "" TERM; while :; do date > /dev/null; done' &)
srun bash -c '(while :; do date > /dev/null; sleep 0.02; done) & exit 0'
sleep 1
exit 6
"""


@pytest.fixture(scope="module")
def batch(cluster: Cluster) -> Iterator[Batch]:
    """Alice's folder on the login node."""
    found = Batch(cluster, folder="signals")
    yield found
    found.clean()


def got(batch: Batch, job: str) -> list[str]:
    """The lines about signals in a job's output."""
    return [line for line in batch.output(job).splitlines() if line.startswith("got ")]


def wait_got(batch: Batch, job: str, lines: list[str]) -> None:
    """Wait until a job has got as many signals."""
    wait_for("signals", lambda: len(got(batch, job)) >= len(lines), 30)


@pytest.fixture(autouse=True)
def nothing_runs(batch: Batch) -> Iterator[None]:
    """A test that fails leaves no job that keeps the next ones waiting."""
    yield
    batch.shell("scancel --me")


@pytest.mark.parametrize("language", SCRIPTS)
@pytest.mark.parametrize("option", ["--batch", "--full"])
def test_pairs_reach_the_script_once(option: str, language: str, batch: Batch) -> None:
    def end(way: tuple[str, ...]) -> End:
        job = batch.submit(SCRIPTS[language], command=way)
        batch.wait_output(job, "up")
        batch.shell("sleep 1.5")
        for number in range(1, 5):
            kill = f"scancel {option} --signal="
            batch.shell(f"{kill}CONT {job}; {kill}USR1 {job}; {kill}USR2 {job}")
            expected = sorted(["got 10", "got 12", "got 18"] * number)
            wait_got(batch, job, expected)
            batch.shell("sleep 0.5")
            assert sorted(got(batch, job)) == expected
        batch.shell(f"scancel {option} --signal=TERM {job}")
        return batch.end(job)

    with ThreadPoolExecutor(len(WAYS)) as pool:
        plain, imaged = pool.map(end, WAYS.values())
    assert plain == imaged


def test_a_warning_reaches_each_task_of_an_array(batch: Batch) -> None:
    script = PYTHON.replace("sys.exit(4)", "sys.exit(0)").replace(
        'print("got", int(number), flush=True)',
        'print("got", int(number), flush=True)\n    if number == 10: sys.exit(0)',
    )
    options = ("--array=1-4", "--signal=B:USR1@50", "--time=1", "--output=%A_%a.out")
    # They run side by side, as far as a user's processors permit.
    for job in [batch.submit(script, *options, command=way) for way in WAYS.values()]:
        assert batch.end(job, 240) == End("COMPLETED", "0:0")
        texts = [batch.output(f"{job}_{task}") for task in range(1, 5)]
        assert [text.count("got 10") for text in texts] == [1] * 4, texts


def test_tasks_of_a_step_get_them_once(batch: Batch) -> None:
    batch.write("task.py", PYTHON)
    script = "#!/bin/sh\nsrun python3 task.py &\nwait\n"
    for way in WAYS.values():
        job = batch.submit(script, "--ntasks=2", "--nodes=1", command=way)
        batch.wait_output(job, "up\nup\n")
        batch.shell("sleep 1.5")
        for _ in range(3):
            batch.shell(f"scancel --signal=CONT {job}.0; scancel --signal=USR1 {job}.0; sleep 1")
        expected = ["got 10"] * 6 + ["got 18"] * 6
        wait_got(batch, job, expected)
        assert sorted(got(batch, job)) == expected
        batch.shell(f"scancel {job}")
        batch.end(job)


def test_what_is_left_ends_as_without_an_image(batch: Batch) -> None:
    for way in WAYS.values():
        job = batch.submit(LEFT, command=way)
        assert batch.end(job) == End("FAILED", "6:0")
        assert batch.output(job) == ""
