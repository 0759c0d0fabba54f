"""Counts of the database, for metrics."""

from __future__ import annotations

from sqlalchemy import Engine, func
from sqlmodel import col, select

from portal.core.monitoring import Figures
from portal.core.session.session import LIVE
from portal.store.reading import reading
from portal.store.tables import JobRow, PendingRemovalRow, SessionRow
from portal.store.tables.jobs import IS_LIVE


class FigureStore:
    """Sizes and counts of the database, for monitoring."""

    def __init__(self, engine: Engine) -> None:
        self._readers = engine.execution_options(read_only=True)

    def figures(self) -> Figures:
        """Sessions by state, revocations that HAProxy has not confirmed, and jobs in the queue."""
        states = select(SessionRow.state, func.count()).group_by(SessionRow.state)
        jobs = select(func.count()).where(IS_LIVE)
        with reading(self._readers) as db:
            counts = dict(db.exec(states.where(col(SessionRow.state).in_(LIVE))).all())
            return Figures(
                sessions={state.value: counts.get(state, 0) for state in sorted(LIVE)},
                revocations=db.exec(select(func.count()).select_from(PendingRemovalRow)).one(),
                jobs=db.exec(jobs.select_from(JobRow)).one(),
            )
