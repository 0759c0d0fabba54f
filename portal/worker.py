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
from datetime import timedelta
from pathlib import Path

from portal.errors import PortalError
from portal.services.auth.accounts import LOOK_SECONDS
from portal.services.container import Services
from portal.services.owner_queue import OwnerQueue
from portal.services.session.idle_culler import IdleCuller
from portal.services.session.reconciler import Reconciler

log = logging.getLogger(__name__)

HANGS_AFTER = 300.0
"""Seconds: whatever is asked of Slurm, of homes and of runners ends long before that."""
MEASURE_SECONDS = 20.0
"""How often it is looked who uses what."""
COMPARE_SECONDS = 10.0
"""How often HAProxy's map is compared with the store."""


@dataclass
class PeriodicTask:
    """Something done again and again; `seconds` from the end of one time to the next."""

    name: str
    seconds: float
    action: Callable[[], object]
    due: float = field(default=0.0)


class TaskThread:
    """Chores that wait for each other, and since when one of them is being done."""

    def __init__(self, *chores: PeriodicTask) -> None:
        self.tasks = chores
        self.begun: float | None = None

    @property
    def hangs(self) -> bool:
        """Whether a chore has been under way for so long that it will never end."""
        begun = self.begun
        return begun is not None and time.monotonic() - begun > HANGS_AFTER


class Worker:
    """Runs the chores, each kind in a thread of its own so that none holds up another."""

    def __init__(self, services: Services) -> None:
        slurm = services.settings.slurm
        reconciler = Reconciler(services.sessions)
        decided = services.administration
        idleness = IdleCuller(services.sessions, decided.site_rules, decided.record)
        self._services = services
        self._stop = threading.Event()
        self._owners = OwnerQueue()
        services.sessions.later = self._owners
        self._lanes = [
            TaskThread(
                PeriodicTask("partitions", slurm.partitions_seconds, reconciler.read_partitions),
                PeriodicTask("look", slurm.poll_seconds, reconciler.poll),
            ),
            TaskThread(PeriodicTask("limits", slurm.limits_seconds, reconciler.read_limits)),
            TaskThread(
                PeriodicTask("routes", 1.0, services.proxy.restore),
                PeriodicTask("shutting", 1.0, services.proxy.retry_revocations),
                PeriodicTask("abandoned", COMPARE_SECONDS, services.apps.close_abandoned),
                PeriodicTask("compare", COMPARE_SECONDS, services.proxy.check_routes),
            ),
            TaskThread(PeriodicTask("accounts", LOOK_SECONDS, services.accounts.check)),
            TaskThread(PeriodicTask("idleness", MEASURE_SECONDS, idleness.cull)),
            TaskThread(
                PeriodicTask("clean", 1.0, reconciler.clean),
                PeriodicTask("requeued", 3.0, reconciler.prepare_requeued),
                PeriodicTask("who", 10.0, reconciler.ask_who_cancelled),
                PeriodicTask("orders", 5.0, reconciler.retry_app_starts),
                PeriodicTask("expire", 60.0, services.logins.expire),
                PeriodicTask("left over", 5.0, services.logins.shut_left_over),
                PeriodicTask("attempts", 60.0, services.attempts.conclude),
                PeriodicTask("variables", 3600.0, self._forget_variables),
                PeriodicTask("journal", 3600.0, services.administration.expire),
            ),
        ]

    def _forget_variables(self) -> None:
        kept = timedelta(days=self._services.settings.sessions.variables_days)
        self._services.sessions.store.forget_variables(self._services.clock() - kept)

    def run(self) -> None:
        """Work until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        threads = [
            threading.Thread(target=self._lane, args=(lane,), daemon=True) for lane in self._lanes
        ]
        self._owners.start()
        for thread in threads:
            thread.start()
        while not self._stop.wait(1.0):
            # Whoever supervises us starts us afresh; a worker that half works helps nobody.
            if not all(thread.is_alive() for thread in threads):
                raise SystemExit("a lane of the worker ended")
            for lane in self._lanes:
                if lane.hangs:
                    names = ", ".join(chore.name for chore in lane.tasks)
                    raise SystemExit(f"a lane of the worker hangs: {names}")
            if self._owners.is_stuck(HANGS_AFTER):
                raise SystemExit("the work for owners of sessions hangs")

    def _lane(self, lane: TaskThread) -> None:
        while not self._stop.is_set():
            for chore in lane.tasks:
                if time.monotonic() >= chore.due:
                    lane.begun = time.monotonic()
                    self._do(chore)
                    lane.begun = None
            pause = min(chore.due for chore in lane.tasks) - time.monotonic()
            self._stop.wait(max(pause, 0.05))

    @staticmethod
    def _do(chore: PeriodicTask) -> None:
        begun = time.monotonic()
        try:
            chore.action()
        except PortalError as error:
            log.warning("%s: %s", chore.name, error)
        except Exception:
            log.exception("%s", chore.name)
        # A slow Slurm is asked less often: never more than half of the time.
        took = time.monotonic() - begun
        chore.due = time.monotonic() + max(chore.seconds, took)


@contextmanager
def only_one(run_directory: str) -> Iterator[None]:
    """Hold the worker's lock; a second worker waits for the first to end."""
    descriptor = os.open(Path(run_directory) / "worker.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
