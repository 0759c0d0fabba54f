"""Limits of a cluster with several accounts, QOS and partitions."""

from __future__ import annotations

from datetime import UTC, datetime

from portal.core.cluster.limits import (
    Association,
    Limits,
    NodeFeatures,
    PartitionAccess,
    Qos,
    Reservation,
    Tres,
)

NOW = datetime(2026, 5, 1, tzinfo=UTC)
LIMITS = Limits(
    enforced=("associations", "limits", "qos"),
    default_accounts={"alice": "physics"},
    associations=(
        Association("physics", "alice", qos=("normal", "big"), default_qos="normal"),
        Association("bio", "alice", qos=("normal",), default_qos="normal"),
        Association("physics", parent="science"),
        Association("bio", parent="root"),
    ),
    qos=(Qos("normal"), Qos("big", least=Tres(cpus=4)), Qos("few", submitted=1)),
    partitions=(
        PartitionAccess("main"),
        PartitionAccess("bio", accounts=("bio",)),
        PartitionAccess("staff", groups=("staff",)),
        PartitionAccess("old", state="DRAIN"),
        PartitionAccess("off", state="DOWN"),
        PartitionAccess("admin", root_only=True),
        PartitionAccess("booked", requires_reservation=True),
        PartitionAccess("shared", oversubscribe="FORCE:4"),
    ),
    reservations=(
        Reservation("course", accounts=("science",)),
        Reservation("bobs", users=("bob",)),
        Reservation("past", end=datetime(2026, 4, 1, tzinfo=UTC)),
        Reservation("there", partition="booked"),
    ),
    features=(NodeFeatures("n1", "main", ("zen4",)),),
)
