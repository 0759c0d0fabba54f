"""Interface to the store of sessions' use over time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from portal.core.job.samples import Reading, Sample
from portal.core.session.session import Facts, State


class SampleStore(Protocol):
    """Use over time. Every method is one transaction."""

    def record(self, session: str, when: Collection[State], facts: Facts, reading: Reading) -> bool:
        """Update a session whose state is one of `when`, and add the reading to its samples.

        False, without a change, for other sessions.
        """
        ...

    def samples(self, session: str) -> list[Sample]:
        """A session's samples, oldest first; at most core.job.samples.MOST."""
        ...

    def forget_samples(self, before: datetime) -> None:
        """Delete the samples of sessions that ended before a time."""
        ...
