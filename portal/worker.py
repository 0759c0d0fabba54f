"""The worker: the only process that polls Slurm, for all users and open pages."""

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

from portal.core.hosts import LOOK_SECONDS
from portal.errors import DatabaseUnavailable, PortalError
from portal.lease import Lease
from portal.services.assembly import Services
from portal.services.auth.accounts import CHECK_SECONDS
from portal.services.owner_queue import OwnerQueue

log = logging.getLogger(__name__)

HANGS_AFTER = 300.0
"""Seconds; every command to Slurm, users' homes and runners has a much shorter deadline."""
BEAT_SECONDS = 3.0
"""Time between two heartbeats (core/cluster/usage.py, WORKER_SILENT_AFTER)."""
MEASURE_SECONDS = 20.0
"""Time between two measurements of the apps' traffic."""
COMPARE_SECONDS = 10.0
"""Time between two comparisons of HAProxy's map with the database."""
FOLLOW_SECONDS = 1.0
"""The same with several hosts, since other hosts open and close routes as well."""


@dataclass
class PeriodicTask:
    """A repeated action; `seconds` from start to start, more if it takes over half of them."""

    name: str
    seconds: float
    action: Callable[[], object]
    due: float = field(default=0.0)


class TaskThread:
    """Tasks that run one after the other, and the start time of the running one."""

    def __init__(self, *tasks: PeriodicTask) -> None:
        self.tasks = tasks
        self.started: float | None = None

    @property
    def hangs(self) -> bool:
        """Whether a task has been running for longer than HANGS_AFTER."""
        started = self.started
        return started is not None and time.monotonic() - started > HANGS_AFTER


def _host_threads(services: Services) -> list[TaskThread]:
    """Tasks of each portal host, for its own HAProxy."""
    agent, proxy = services.host_agent, services.proxy
    if agent is None:
        return [
            TaskThread(
                PeriodicTask("restore", 1.0, proxy.restore),
                PeriodicTask("revoke", 1.0, proxy.retry_revocations),
                PeriodicTask("compare", COMPARE_SECONDS, proxy.check_routes),
            )
        ]
    return [
        TaskThread(PeriodicTask("follow", LOOK_SECONDS, agent.follow)),
        TaskThread(PeriodicTask("compare", FOLLOW_SECONDS, agent.compare)),
        TaskThread(
            PeriodicTask("settle", 1.0, agent.settle),
            PeriodicTask("traffic", MEASURE_SECONDS / 2, agent.note_traffic),
        ),
    ]


def _site_threads(services: Services) -> list[TaskThread]:
    """Tasks of one worker for all portal hosts."""
    slurm = services.settings.slurm
    cluster, reconciler = services.cluster_reader, services.reconciler
    jobs = services.job_follower
    return [
        TaskThread(
            PeriodicTask("partitions", slurm.partitions_seconds, cluster.read_partitions),
            PeriodicTask("poll", slurm.poll_seconds, reconciler.poll),
        ),
        TaskThread(
            PeriodicTask("jobs", 1.0, jobs.follow),
            PeriodicTask("job texts", 3.0, jobs.read_texts),
        ),
        TaskThread(PeriodicTask("job ends", 5.0, jobs.settle)),
        TaskThread(PeriodicTask("old jobs", 60.0, jobs.forget)),
        TaskThread(PeriodicTask("job history", 10.0, jobs.catch_up)),
        TaskThread(PeriodicTask("limits", slurm.limits_seconds, cluster.read_limits)),
        TaskThread(PeriodicTask("batch settings", 10.0, services.batch_settings.publish)),
        TaskThread(PeriodicTask("abandoned", COMPARE_SECONDS, services.apps.close_abandoned)),
        TaskThread(PeriodicTask("accounts", CHECK_SECONDS, services.account_watch.check)),
        TaskThread(PeriodicTask("uploads", 900.0, services.file_servers.clean_up)),
        TaskThread(PeriodicTask("idle", MEASURE_SECONDS, services.idle_culler.cull)),
        TaskThread(
            PeriodicTask("messages", 10.0, services.mailer.look),
            PeriodicTask("mail", 10.0, services.mailer.send),
            PeriodicTask("old messages", 3600.0, services.mailer.forget),
        ),
        TaskThread(PeriodicTask("heartbeat", BEAT_SECONDS, services.monitoring.beat)),
        _housekeeping(services),
    ]


def _housekeeping(services: Services) -> TaskThread:
    housekeeping, logins = services.housekeeping, services.logins
    return TaskThread(
        PeriodicTask("clean", 1.0, housekeeping.clean),
        PeriodicTask("requeued", 3.0, housekeeping.prepare_requeued),
        PeriodicTask("slow starts", 10.0, housekeeping.read_slow_starts),
        PeriodicTask("adopt", 5.0, services.adoption.adopt_waiting),
        PeriodicTask("maintenance", 5.0, services.maintenance_follower.follow),
        PeriodicTask("who", 10.0, housekeeping.ask_who_cancelled),
        PeriodicTask("app starts", 5.0, housekeeping.retry_app_starts),
        PeriodicTask("expire", 60.0, logins.expire),
        PeriodicTask("file access", 60.0, services.file_servers.expire),
        PeriodicTask("left over", 5.0, logins.revoke_left_over),
        PeriodicTask("attempts", 60.0, services.login_attempts.record_finished_hours),
        PeriodicTask("variables", 3600.0, housekeeping.forget_variables),
        PeriodicTask("hub variables", 60.0, housekeeping.forget_hub_env),
        PeriodicTask("samples", 3600.0, housekeeping.forget_samples),
        PeriodicTask("job use", 3600.0, services.job_use.forget),
        PeriodicTask("journal", 3600.0, services.administration.expire),
    )


class Worker:
    """Runs the periodic tasks, sequentially in each thread.

    Without a lease it runs all tasks. With one, the tasks for this host's HAProxy use separate
    services, and the other tasks run only while this worker has the lease.
    """

    def __init__(
        self,
        services: Services,
        owner_queue: OwnerQueue,
        host_services: Services | None = None,
        lease: Lease | None = None,
    ) -> None:
        self._stop = threading.Event()
        self._owner_queue = owner_queue
        self._lease = lease
        self._host_threads = _host_threads(host_services or services)
        self._threads = _site_threads(services)
        self._running: list[threading.Thread] = []

    def run_host_only(self, is_over: Callable[[], bool]) -> None:
        """Run the tasks for this host's HAProxy, until it is over, SIGTERM or SIGINT."""
        self._await_signals()
        self._start(self._host_threads)
        while not self._stop.wait(0.2) and not is_over():
            self._look_after(self._host_threads)

    def _await_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())

    def run(self) -> None:
        """Run until SIGTERM or SIGINT."""
        self._await_signals()
        self._start(self._host_threads)
        watched = list(self._host_threads)
        if self._lease is not None:
            while not self._lease.acquire():
                self._look_after(watched)
                if self._stop.wait(1.0):
                    return
            self._lease.keep()
        self._owner_queue.start()
        self._start(self._threads)
        watched += self._threads
        while not self._stop.wait(1.0):
            self._look_after(watched)
            if self._owner_queue.is_stuck(HANGS_AFTER):
                raise SystemExit("an action for a session owner hangs")

    def _start(self, threads: list[TaskThread]) -> None:
        for thread in threads:
            running = threading.Thread(target=self._repeat, args=(thread,), daemon=True)
            self._running.append(running)
            running.start()

    def _look_after(self, threads: list[TaskThread]) -> None:
        # Exit, so that the supervisor restarts the worker, instead of running without a thread.
        if not all(running.is_alive() for running in self._running):
            raise SystemExit("a thread of the worker ended")
        for thread in threads:
            if thread.hangs:
                names = ", ".join(task.name for task in thread.tasks)
                raise SystemExit(f"a thread of the worker hangs: {names}")

    def _repeat(self, thread: TaskThread) -> None:
        while not self._stop.is_set():
            for task in thread.tasks:
                if time.monotonic() >= task.due:
                    thread.started = time.monotonic()
                    self._do(task)
                    thread.started = None
            pause = min(task.due for task in thread.tasks) - time.monotonic()
            self._stop.wait(max(pause, 0.05))

    @staticmethod
    def _do(task: PeriodicTask) -> None:
        started = time.monotonic()
        try:
            task.action()
        except DatabaseUnavailable:
            pass  # logged by the database's adapter, once a minute for all tasks
        except PortalError as error:
            log.warning("%s: %s", task.name, error)
        except Exception:
            log.exception("%s", task.name)
        # A slow Slurm is queried less often: a task runs at most half of the time.
        ended = time.monotonic()
        task.due = max(started + task.seconds, ended + (ended - started))


@contextmanager
def only_one(run_directory: str, holder: Callable[[], str] = str) -> Iterator[None]:
    """Hold the lock of this host's worker; a second worker waits, and logs the `holder`."""
    descriptor = os.open(Path(run_directory) / "worker.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("another worker runs on %s, waiting", holder() or "this host")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
