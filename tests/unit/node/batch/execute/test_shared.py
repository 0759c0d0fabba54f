"""Tasks of a step that share a container: the first one makes it, the others enter it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.batch import handover
from portal.node.batch.execute import shared, sockets
from portal.node.batch.execute.container import ContainerError
from tests.unit.node.batch.execute.jobs import Node, children, started, wait_until

STEPD = """
import os, subprocess, sys
tasks = [
    subprocess.Popen(sys.argv[1:], env={**os.environ, "SLURM_LOCALID": number},
                     stdin=subprocess.DEVNULL, preexec_fn=os.setpgrp)
    for number in "10"
]
sys.exit(sum(task.wait() for task in tasks))
"""
"""Parent of two tasks, of which the first one comes later."""
PROGRAM = """#!/bin/sh
trap 'exit 3' USR1
echo > "up.$SLURM_LOCALID"
while :; do sleep 0.05; done
"""
TOKEN = "0123456789abcdef"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """A compute node, in whose folder the tasks run."""
    monkeypatch.chdir(tmp_path)
    machine = Node(tmp_path)
    yield machine
    machine.end()


def test_others_enter_the_first_ones_container_and_slurm_signals_only_tasks(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm signals all children of slurmstepd, and Apptainer's would die of that."""
    node.variables["APPTAINER_INSTANCE"] = "container_7"
    path = str(node.program("task", PROGRAM))
    monkeypatch.setenv(handover.REQUEST, handover.plain(node.request.text()))
    step = {"folder": str(node.folder), "variables": {}, "token": TOKEN}
    monkeypatch.setenv(handover.STEP, handover.encode(step))
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    with started([sys.executable, "-c", STEPD, *node.step(path)]) as stepd:
        wait_until(lambda: Path("up.0").exists() and Path("up.1").exists())
        entered, _, _ = json.loads(Path("apptainer.json").read_text())
        assert "instance://container_7" in entered
        assert "--sharens" not in entered
        tasks = children(stepd.pid)
        assert len(tasks) == 2
        for task in tasks:
            os.kill(task, signal.SIGUSR1)
        assert stepd.wait(60) == 6


def test_all_learn_the_name_also_those_who_come_early() -> None:
    name = shared.name_of(TOKEN)
    names: list[str] = []
    early = threading.Thread(target=lambda: names.append(shared.instance_of(name)))
    early.start()
    first = shared.FirstTask(name)
    first.tell("container_7")
    early.join(60)
    assert [*names, shared.instance_of(name)] == ["container_7"] * 2


def test_a_first_task_that_fails_is_told_to_the_others() -> None:
    name = shared.name_of("f" * 16)
    listener = sockets.listen(name)

    def refuse() -> None:
        listener.accept()[0].close()

    connected = threading.Thread(target=refuse)
    connected.start()
    with pytest.raises(ContainerError, match="first task of this step"):
        shared.instance_of(name)
    connected.join(60)
    listener.close()
    with pytest.raises(ContainerError, match="first task of this step"):
        shared.instance_of(name, seconds=0.1)


@pytest.mark.parametrize("step", ["x", [], {"folder": "/"}, {"token": "../x"}, {"token": 7}])
def test_a_step_without_a_token_is_refused(step: object) -> None:
    with pytest.raises(ValueError, match="this version"):
        handover.step_token({handover.STEP: handover.encode(step)})
