"""The worker's threads: a hanging one is detected."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from portal import worker
from portal.services.owner_queue import OwnerQueue
from portal.worker import PeriodicTask, TaskThread, Worker
from tests.fakes import World


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
    lane.begun = time.monotonic()
    assert not lane.hangs
    lane.begun -= 1
    assert lane.hangs
