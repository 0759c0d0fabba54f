"""The worker's threads: a hanging one is detected, and each task belongs to a host or the site."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from portal import worker
from portal.services.assembly import Services
from portal.services.owner_queue import OwnerQueue, run_now
from portal.worker import PeriodicTask, TaskThread, Worker
from tests.support.fakes import World


def test_a_hanging_thread_is_detected(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """H3 c: a thread that is alive may never return."""
    monkeypatch.setattr(worker, "HANGS_AFTER", 0.5)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    hold = threading.Event()
    subject = Worker(world.services, OwnerQueue())
    subject._threads = [
        TaskThread(PeriodicTask("quick", 0.05, lambda: None)),
        TaskThread(PeriodicTask("hangs", 0.05, lambda: hold.wait(20))),
    ]
    with pytest.raises(SystemExit, match="hangs: hangs"):
        subject.run()
    subject._stop.set()
    hold.set()


def test_long_tasks_are_not_hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "HANGS_AFTER", 0.2)
    lane = TaskThread(PeriodicTask("any", 1, lambda: None))
    assert not lane.hangs
    lane.started = time.monotonic()
    assert not lane.hangs
    lane.started -= 1
    assert lane.hangs


def names(threads: list[TaskThread]) -> set[str]:
    return {task.name for thread in threads for task in thread.tasks}


@pytest.mark.parametrize("hosts", ["one", "several"])
def test_the_tasks_of_each_host_and_of_the_site(world: World, hosts: str) -> None:
    """Only one worker speaks to Slurm, acts for people, and says that the worker lives."""
    settings = world.services.settings
    state = settings.state.model_copy(update={"hosts": hosts, "host_name": "a"})
    found = settings.model_copy(update={"state": state})
    subject = Worker(Services(found, world.systems, run_now), OwnerQueue())
    here, site = names(subject._host_threads), names(subject._threads)
    several = {"follow", "compare", "settle", "traffic"}
    assert here == (several if hosts == "several" else {"restore", "revoke", "compare"})
    assert {"poll", "heartbeat", "adopt", "maintenance", "accounts", "abandoned"} <= site
    assert not here & site
