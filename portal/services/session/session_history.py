"""What is stored about a session beyond the session itself: use over time, and its timeline."""

from __future__ import annotations

from collections.abc import Callable

from portal.core.admin.timeline import EVENTS, Moment, timeline
from portal.core.auth.person import Person
from portal.core.job.samples import Point, at_most, to_points
from portal.core.session.session import Session
from portal.services.admin.administration import Administration
from portal.store.samples import SampleStore

MOST_EVENTS = 200
"""Events of one session's timeline, the newest ones."""


class SessionHistory:
    """Reads the history of sessions that the user may see (else NotFound)."""

    def __init__(
        self,
        get_session: Callable[[Person, str], Session],
        samples: SampleStore,
        administration: Administration,
    ) -> None:
        self._get_session = get_session
        self._samples = samples
        self._administration = administration

    def use(self, person: Person, session_id: str, count: int) -> list[Point]:
        """Use over time in at most `count` points, oldest first."""
        session = self._get_session(person, session_id)
        samples = at_most(self._samples.samples(session.id), count)
        return to_points(samples, session.started, session.cpus)

    def timeline(self, person: Person, session_id: str) -> list[Moment]:
        """What happened to it, oldest first."""
        session = self._get_session(person, session_id)
        events = self._administration.events_of(session.id, EVENTS, MOST_EVENTS)
        return timeline(session, events)
