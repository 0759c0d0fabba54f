"""What a launch would wait for because of maintenance: the portal's, and Slurm's own."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from portal.core.auth.person import Person
from portal.core.interfaces.systems import Clock
from portal.core.notices.maintenance import UnderMaintenance
from portal.core.notices.window import Window, waits_for, window
from portal.core.session.session import Session
from portal.services.notices.notices import Notices
from portal.store.status import StatusStore


class Outlook(NamedTuple):
    """What maintenance means for a launch."""

    begin: datetime | None = None
    """When it would start, because of the portal's maintenance mode; None: at once."""
    refused: str = ""
    """Why it would be refused."""
    window: Window | None = None
    """Slurm's maintenance that its time limit reaches into; None if there is none."""


class MaintenanceOutlook:
    """Looks at announced maintenance before a launch; reads the database, never Slurm."""

    def __init__(self, notices: Notices, status: StatusStore, clock: Clock) -> None:
        self._notices = notices
        self._status = status
        self._clock = clock

    def of(self, person: Person, draft: Session) -> Outlook:
        """What it means for a session as it would be launched."""
        try:
            begin = self._notices.launch_begin(person)
        except UnderMaintenance as error:
            return Outlook(refused=error.text)
        return Outlook(begin, window=self._window(draft, begin))

    def _window(self, draft: Session, begin: datetime | None) -> Window | None:
        """That of the nodes of its partition; a session in a reservation waits for none."""
        limits = self._status.limits()
        if limits is None or draft.partition is None or draft.reservation:
            return None
        nodes = [one.name for one in self._status.nodes() if draft.partition in one.partitions]
        now = begin or self._clock()
        return waits_for(window(limits.reservations, nodes, now), draft.time_limit)
