"""How much more time or memory a session's successor may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from portal.core.cluster.effective_limits import UserPartition
from portal.core.policy import group_for
from portal.core.session.ended_lately import Shortage, larger, longer
from portal.core.session.session import Session
from portal.core.units import format_size
from portal.services.cluster import Cluster


class Enlarger:
    """Proposes twice as much, as far as the owner's limits permit."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def propose(
        self, session: Session, what: Shortage, groups: Sequence[UserPartition] | None = None
    ) -> int | None:
        """Minutes of a longer time limit, or MiB of more memory; None if it had the most.

        `groups` are the partitions of its owner, if they have been read already.
        """
        if groups is None:
            groups = self._cluster.look().partitions_for(session.owner, session.slurm) or []
        found = group_for(session.partition, groups)
        group = found if isinstance(found, UserPartition) else None
        if what is Shortage.TIME:
            return longer(session, group.max_minutes if group else None)
        return larger(session, group.max_memory_mb if group else None)

    def enlarge(self, body: dict[str, Any], session: Session, what: Shortage) -> dict[str, Any]:
        """The request body of a session's copy with more of what it lacked, if that is possible."""
        more = self.propose(session, what)
        if more is None:
            return body
        if what is Shortage.TIME:
            return body | {"time_limit": more}
        return body | {"resources": body["resources"] | {"memory": format_size(more)}}
