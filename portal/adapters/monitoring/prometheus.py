"""The portal's metrics, kept by prometheus-client and exposed to Prometheus."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from portal.adapters.monitoring.slots import Slots
from portal.core.interfaces.monitoring import Measures
from portal.core.monitoring import Snapshot

log = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Content type of the format that `exposition` writes."""
_QUICK = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_COMMANDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
_LAUNCH = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 300.0, 1800.0, 3600.0, 6 * 3600.0)


class PrometheusMeasures(Measures):
    """Metrics of this process; with a folder, aggregated over all processes that use it."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder if folder and _share(folder) else None
        self._registry = CollectorRegistry()
        self._logins = Counter(
            "slipway_logins", "Attempts to log in with a password.", ["outcome"],
            registry=self._registry,
        )  # fmt: skip
        self._launches = Histogram(
            "slipway_launch_seconds",
            "Time of each phase of a session's start: submit (from the request until sbatch has "
            "answered, waits included), queue (until the job starts), start (until apps can be "
            "reached), total.",
            ["phase"], buckets=_LAUNCH, registry=self._registry,
        )  # fmt: skip
        self._commands = Histogram(
            "slipway_slurm_command_seconds", "Time of Slurm's commands.", ["command"],
            buckets=_COMMANDS, registry=self._registry,
        )  # fmt: skip
        self._command_outcomes = Counter(
            "slipway_slurm_commands",
            "Slurm's commands: ok, failed (by their exit status) or unanswered.",
            ["command", "outcome"], registry=self._registry,
        )  # fmt: skip
        self._requests = Counter(
            "slipway_http_requests", "Requests to the portal, by the template of their route.",
            ["method", "route", "status"], registry=self._registry,
        )  # fmt: skip
        self._durations = Histogram(
            "slipway_http_request_seconds", "Time of requests to the portal.", ["route"],
            buckets=_QUICK, registry=self._registry,
        )  # fmt: skip
        for outcome in ("ok", "refused", "limited"):  # rates need a series from the beginning
            self._logins.labels(outcome)

    def login(self, outcome: str) -> None:
        self._logins.labels(outcome).inc()

    def launch(self, phase: str, seconds: float) -> None:
        self._launches.labels(phase).observe(max(seconds, 0.0))

    def command(self, name: str, outcome: str, seconds: float) -> None:
        self._commands.labels(name).observe(seconds)
        self._command_outcomes.labels(name, outcome).inc()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, f"{status // 100}xx").inc()
        self._durations.labels(route).observe(seconds)

    def exposition(self, snapshot: Snapshot) -> bytes:
        """All metrics in Prometheus's text format, the snapshot's gauges included."""
        registry = CollectorRegistry()
        if self._folder:
            MultiProcessCollector(registry, str(self._folder))  # type: ignore[no-untyped-call]
        text = generate_latest(registry if self._folder else self._registry)
        return text + generate_latest(_of_snapshot(snapshot))


def _share(folder: Path) -> bool:
    """Store this process's values in the files of a slot; returns whether that is possible."""
    try:
        slots = Slots(folder)
        slots.identifier()
        # prometheus-client documents both for servers that number their processes themselves.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        values.ValueClass = values.MultiProcessValue(slots.identifier)  # type: ignore[no-untyped-call]
    except OSError as error:
        log.warning("metrics: each process counts for itself: %s", error)
        return False
    return True


def _of_snapshot(snapshot: Snapshot) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_SnapshotCollector(snapshot))
    return registry


class _SnapshotCollector(Collector):
    """Gauges from the database and the disk; unknown values are left out."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterable[Metric]:
        """Yield all gauges."""
        facts = self._snapshot
        yield _gauge(
            "slipway_build_info", "The release that runs; always 1.", {(facts.version,): 1.0},
            "version",
        )  # fmt: skip
        yield _gauge(
            "slipway_ready", "Whether each part of the portal works.",
            {(part.name,): float(part.ok) for part in facts.parts}, "part",
        )  # fmt: skip
        if facts.figures is not None:
            yield _gauge(
                "slipway_sessions", "Sessions that are not over, by state.",
                {(state,): float(count) for state, count in facts.figures.sessions.items()},
                "state",
            )  # fmt: skip
            yield _gauge(
                "slipway_revocations_pending",
                "Routes to apps that were revoked and that HAProxy has not confirmed to be gone.",
                {(): float(facts.figures.revocations)},
            )
            yield _gauge(
                "slipway_jobs_followed", "Jobs of Slurm's queue that the portal follows.",
                {(): float(facts.figures.jobs)},
            )  # fmt: skip
        for name, text, age in (
            ("slipway_worker_age_seconds", "Age of the worker's last sign of life.", facts.worker),
            ("slipway_look_age_seconds", "Age of the worker's last look at Slurm.", facts.look),
            ("slipway_slurm_age_seconds", "Age of Slurm's last answer.", facts.slurm),
        ):
            if age is not None:
                yield _gauge(name, text, {(): age})
        yield _gauge(
            "slipway_certificate_days", "Days until a certificate of the portal expires.",
            {(name,): days for name, days in facts.certificates.items()}, "certificate",
        )  # fmt: skip
        yield from _cluster(facts)
        if facts.room is not None:
            yield _gauge(
                "slipway_state_free_bytes", "Free bytes in the portal's state directory.",
                {(): float(facts.room.free)},
            )  # fmt: skip
            yield _gauge(
                "slipway_state_size_bytes", "Size of that file system in bytes.",
                {(): float(facts.room.total)},
            )  # fmt: skip


def _cluster(snapshot: Snapshot) -> Iterable[Metric]:
    if snapshot.nodes:
        yield _gauge(
            "slipway_nodes", "Nodes of the cluster, by whether Slurm starts jobs there.",
            {(state,): float(count) for state, count in snapshot.nodes.items()}, "state",
        )  # fmt: skip


def _gauge(
    name: str, text: str, samples: dict[tuple[str, ...], float], *labels: str
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=labels)
    for label_values, value in samples.items():
        family.add_metric(label_values, value)
    return family
