"""Health of the portal's parts and figures for metrics, cached for a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

from portal.core.cluster.node_list import NodeSummary
from portal.core.cluster.usage import SlurmStatus
from portal.core.interfaces.monitoring import Disk, Measures
from portal.core.interfaces.systems import Clock, Routes
from portal.core.monitoring import (
    LOOK,
    PROBE,
    WORKER,
    Part,
    Snapshot,
    disk_part,
    host_part,
    seconds_since,
    slurm_part,
    worker_part,
)
from portal.errors import PortalError
from portal.store.figures import FigureStore
from portal.store.heartbeats import HeartbeatStore
from portal.store.hosts import HostStore
from portal.store.status import StatusStore
from portal.version import release

CACHE_SECONDS = 1.0
"""Cache lifetime, so that frequent requests cause no more checks."""
STALE_SECONDS = 10.0
"""Age from which a cached result is not returned, however slow the next check is."""
_DAY = 86400.0
Value = TypeVar("Value")


class Cached(Generic[Value]):
    """A cached result; others are served from it while one thread refreshes."""

    def __init__(self, look: Callable[[], Value], clock: Callable[[], float]) -> None:
        self._look = look
        self._clock = clock
        self._lock = threading.Lock()
        self._cached: tuple[float, Value] | None = None

    def __call__(self) -> Value:
        """The result, at most CACHE_SECONDS old unless a refresh is slow."""
        cached = self._cached
        if cached is not None and self._clock() - cached[0] < CACHE_SECONDS:
            return cached[1]
        is_stale = cached is None or self._clock() - cached[0] > STALE_SECONDS
        if not self._lock.acquire(blocking=is_stale) and cached is not None:
            return cached[1]
        try:
            current = self._cached
            if current is None or current is cached or self._clock() - current[0] >= CACHE_SECONDS:
                self._cached = current = (self._clock(), self._look())
            return current[1]
        finally:
            self._lock.release()


class Monitoring:
    """The health of each part, and figures for metrics; never asks Slurm."""

    def __init__(
        self,
        *,
        heartbeats: HeartbeatStore,
        figures: FigureStore,
        status: StatusStore,
        hosts: HostStore,
        this_host: str,
        routes: Routes,
        disk: Disk,
        state: Path,
        needed_mb: int,
        expiries: Callable[[], dict[str, datetime]],
        measures: Measures,
        exposition: Callable[[Snapshot], bytes],
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`this_host`: its name if it is one of several, else ""."""
        self._heartbeats = heartbeats
        self._figures = figures
        self._status = status
        self._hosts = hosts
        self._this_host = this_host
        self._routes = routes
        self._disk = disk
        self._state = state
        self._needed_mb = needed_mb
        self._expiries = expiries
        self._measures = measures
        self._exposition = exposition
        self._clock = clock
        self.parts = Cached(lambda: tuple(self._parts()), monotonic)
        """Each part of the portal, and whether it works."""
        self.snapshot = Cached(self._snapshot, monotonic)
        """The figures for metrics, without counters."""

    def exposition(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return self._exposition(self.snapshot())

    def note_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count and time a request, by the template of its route."""
        self._measures.request(method, route, status, seconds)

    def beat(self) -> None:
        """The heartbeat of the worker that acts for the site; raises DatabaseUnavailable."""
        self._heartbeats.beat(WORKER, self._clock())

    def _parts(self) -> Iterator[Part]:
        now = self._clock()
        yield self._database(now)
        try:
            beats, status = self._heartbeats.beats(), self._status.slurm_status()
        except PortalError:
            yield Part(WORKER, False, "not known: the database does not answer")
            yield Part("slurm", False, "not known: the database does not answer")
        else:
            yield worker_part(beats, now)
            yield slurm_part(status, beats, now)
            yield from self._host()
        yield self._proxy()
        yield self._room()

    def _database(self, now: datetime) -> Part:
        try:
            self._heartbeats.beat(PROBE, now)
        except PortalError as error:
            return Part("database", False, error.title.lower())
        return Part("database", True, "can be written")

    def _host(self) -> Iterator[Part]:
        if not self._this_host:
            return
        try:
            yield host_part(self._this_host, self._hosts.hosts())
        except PortalError:
            yield Part("host", False, "not known: the database does not answer")

    def _proxy(self) -> Part:
        try:
            self._routes.is_lost()
        except PortalError:
            return Part("haproxy", False, "its runtime socket does not answer")
        return Part("haproxy", True, "its runtime socket answers")

    def _room(self) -> Part:
        try:
            return disk_part(self._disk(self._state), self._needed_mb)
        except OSError as error:
            return Part("disk", False, f"{error.strerror}")

    def _snapshot(self) -> Snapshot:
        now = self._clock()
        try:
            figures, beats = self._figures.figures(), self._heartbeats.beats()
            status, nodes = self._status.slurm_status(), self._status.nodes.summary()
        except PortalError:
            figures, beats, status, nodes = None, {}, SlurmStatus(None, None), NodeSummary()
        try:
            room = self._disk(self._state)
        except OSError:
            room = None
        days = {
            name: (when - now).total_seconds() / _DAY for name, when in self._expiries().items()
        }
        return Snapshot(
            version=release(),
            parts=self.parts(),
            figures=figures,
            worker=seconds_since(beats.get(WORKER), now),
            look=seconds_since(beats.get(LOOK), now),
            slurm=seconds_since(status.answered, now),
            certificates=days,
            room=room,
            nodes={"usable": nodes.usable, "unusable": nodes.nodes - nodes.usable}
            if nodes.nodes
            else {},
        )
