"""The worker: the one process that asks Slurm, whatever the number of users and open pages."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from portal.errors import PortalError
from portal.services.auth.accounts import CHECK_SECONDS
from portal.services.container import Services
from portal.services.owner_queue import OwnerQueue

log = logging.getLogger(__name__)

HANGS_AFTER = 300.0
"""Seconds: whatever is asked of Slurm, of homes and of runners ends long before that."""
MEASURE_SECONDS = 20.0
"""Time between two measurements of the apps' traffic."""
COMPARE_SECONDS = 10.0
"""Time between two comparisons of HAProxy's map with the database."""


@dataclass
class PeriodicTask:
    """An action that is repeated; `seconds` from the end of one run to the start of the next."""

    name: str
    seconds: float
    action: Callable[[], object]
    due: float = field(default=0.0)


class TaskThread:
    """Tasks that wait for each other, and since when one of them has been running."""

    def __init__(self, *tasks: PeriodicTask) -> None:
        self.tasks = tasks
        self.begun: float | None = None

    @property
    def hangs(self) -> bool:
        """Whether a task has been running for so long that it will never end."""
        begun = self.begun
        return begun is not None and time.monotonic() - begun > HANGS_AFTER


class Worker:
    """Runs the periodic tasks; those in one thread wait for each other, threads do not."""

    def __init__(self, services: Services, owner_queue: OwnerQueue) -> None:
        slurm = services.settings.slurm
        cluster, reconciler = services.cluster_reader, services.reconciler
        house, logins = services.housekeeping, services.logins
        self._stop = threading.Event()
        self._owner_queue = owner_queue
        self._threads = [
            TaskThread(
                PeriodicTask("partitions", slurm.partitions_seconds, cluster.read_partitions),
                PeriodicTask("poll", slurm.poll_seconds, reconciler.poll),
            ),
            TaskThread(PeriodicTask("limits", slurm.limits_seconds, cluster.read_limits)),
            TaskThread(
                PeriodicTask("restore", 1.0, services.proxy.restore),
                PeriodicTask("revoke", 1.0, services.proxy.retry_revocations),
                PeriodicTask("abandoned", COMPARE_SECONDS, services.apps.close_abandoned),
                PeriodicTask("compare", COMPARE_SECONDS, services.proxy.check_routes),
            ),
            TaskThread(PeriodicTask("accounts", CHECK_SECONDS, services.account_watch.check)),
            TaskThread(PeriodicTask("idle", MEASURE_SECONDS, services.idle_culler.cull)),
            TaskThread(
                PeriodicTask("clean", 1.0, house.clean),
                PeriodicTask("requeued", 3.0, house.prepare_requeued),
                PeriodicTask("who", 10.0, house.ask_who_cancelled),
                PeriodicTask("app starts", 5.0, house.retry_app_starts),
                PeriodicTask("expire", 60.0, logins.expire),
                PeriodicTask("left over", 5.0, logins.revoke_left_over),
                PeriodicTask("attempts", 60.0, services.login_attempts.record_finished_hours),
                PeriodicTask("variables", 3600.0, house.forget_variables),
                PeriodicTask("journal", 3600.0, services.administration.expire),
            ),
        ]

    def run(self) -> None:
        """Work until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        self._owner_queue.start()
        running = [
            threading.Thread(target=self._repeat, args=(thread,), daemon=True)
            for thread in self._threads
        ]
        for each in running:
            each.start()
        while not self._stop.wait(1.0):
            # The supervisor starts a new one; a worker that half works helps nobody.
            if not all(each.is_alive() for each in running):
                raise SystemExit("a thread of the worker ended")
            for thread in self._threads:
                if thread.hangs:
                    names = ", ".join(task.name for task in thread.tasks)
                    raise SystemExit(f"a thread of the worker hangs: {names}")
            if self._owner_queue.is_stuck(HANGS_AFTER):
                raise SystemExit("the work for owners of sessions hangs")

    def _repeat(self, thread: TaskThread) -> None:
        while not self._stop.is_set():
            for task in thread.tasks:
                if time.monotonic() >= task.due:
                    thread.begun = time.monotonic()
                    self._do(task)
                    thread.begun = None
            pause = min(task.due for task in thread.tasks) - time.monotonic()
            self._stop.wait(max(pause, 0.05))

    @staticmethod
    def _do(task: PeriodicTask) -> None:
        begun = time.monotonic()
        try:
            task.action()
        except PortalError as error:
            log.warning("%s: %s", task.name, error)
        except Exception:
            log.exception("%s", task.name)
        # A slow Slurm is asked less often: never more than half of the time.
        took = time.monotonic() - begun
        task.due = time.monotonic() + max(task.seconds, took)


@contextmanager
def only_one(run_directory: str) -> Iterator[None]:
    """Hold the worker's lock; a second worker waits for the first to end."""
    descriptor = os.open(Path(run_directory) / "worker.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
