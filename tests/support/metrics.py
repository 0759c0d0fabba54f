"""A snapshot of the portal's state, and samples of its Prometheus metrics."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from portal.core.monitoring import Figures, Part, Room, Snapshot

SNAPSHOT = Snapshot(
    version="1.2",
    parts=(Part("database", True, ""), Part("worker", False, "not running")),
    figures=Figures({"RUNNING": 3, "PENDING": 0}, revocations=2, jobs=7),
    worker=1.5,
    look=2.5,
    slurm=4.0,
    certificates={"server": 12.5},
    room=Room(1024, 4096),
    nodes={"usable": 2, "unusable": 1},
)


def samples(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """All samples by name and labels."""
    families = text_string_to_metric_families(text.decode())
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in families
        for one in family.samples
    }
