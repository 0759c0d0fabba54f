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
from portal.idleness import Idleness
from portal.reconcile import Reconciler
from portal.services import Services

log = logging.getLogger(__name__)

MEASURE_SECONDS = 20.0
"""How often it is looked who uses what."""
COMPARE_SECONDS = 10.0
"""How often HAProxy's map is compared with the store."""


@dataclass
class Chore:
    """Something done again and again; `seconds` from the end of one time to the next."""

    name: str
    seconds: float
    action: Callable[[], object]
    due: float = field(default=0.0)


class Worker:
    """Runs the chores, each kind in a thread of its own so that none holds up another."""

    def __init__(self, services: Services) -> None:
        slurm = services.settings.slurm
        reconciler = Reconciler(services.sessions)
        decided = services.administration
        idleness = Idleness(services.sessions, decided.rules, decided.note)
        self._stop = threading.Event()
        self._lanes = [
            [
                Chore("partitions", slurm.partitions_seconds, reconciler.read_partitions),
                Chore("look", slurm.poll_seconds, reconciler.look),
            ],
            [Chore("limits", slurm.limits_seconds, reconciler.read_limits)],
            [
                Chore("routes", 1.0, services.access.ways.restore),
                Chore("shutting", 1.0, services.access.ways.shut_again),
                Chore("compare", COMPARE_SECONDS, services.access.compare),
            ],
            [Chore("idleness", MEASURE_SECONDS, idleness.look)],
            [
                Chore("clean", 1.0, reconciler.clean),
                Chore("requeued", 3.0, reconciler.prepare_requeued),
                Chore("who", 10.0, reconciler.ask_who),
                Chore("orders", 5.0, reconciler.order_again),
                Chore("expire", 60.0, lambda: services.logins.expire(services.clock())),
                Chore("journal", 3600.0, services.administration.expire),
            ],
        ]

    def run(self) -> None:
        """Work until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        threads = [
            threading.Thread(target=self._lane, args=(lane,), daemon=True) for lane in self._lanes
        ]
        for thread in threads:
            thread.start()
        while not self._stop.wait(1.0):
            if not all(thread.is_alive() for thread in threads):
                # Whoever supervises us starts us afresh; a worker that half works helps nobody.
                raise SystemExit("a lane of the worker ended")

    def _lane(self, chores: list[Chore]) -> None:
        while not self._stop.is_set():
            for chore in chores:
                if time.monotonic() >= chore.due:
                    self._do(chore)
            pause = min(chore.due for chore in chores) - time.monotonic()
            self._stop.wait(max(pause, 0.05))

    @staticmethod
    def _do(chore: Chore) -> None:
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
