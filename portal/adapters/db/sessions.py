"""The store: sessions, launch keys and what is known of the cluster, in an SQL database.

Changes to a session compare its state first, in the same statement: the web application, the
worker and a runner's call may all touch one row in the same second, and none overwrites another.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Unpack

from pydantic import TypeAdapter
from sqlalchemy import Engine, create_engine, event, func, or_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.adapters.db.reencrypt import place_of
from portal.adapters.db.session_query import query_page
from portal.adapters.db.tables import ClusterRow, LaunchKeyRow, SessionEnvRow, SessionRow
from portal.adapters.encryption import Sealer, is_sealed
from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Limits
from portal.core.cluster.usage import ClusterUsage, SlurmStatus
from portal.core.session.idle import TrafficSample
from portal.core.session.query import ListQuery, Page
from portal.core.session.session import LIVE, OVER, Facts, Session, State
from portal.core.session.transitions import Transition
from portal.errors import Conflict, KeyReused


def open_database(url: str) -> Engine:
    """Connect; SQLite is told to let readers and one writer work side by side."""
    # Parameters are people's: without this an error of the database would put them into the log.
    engine = create_engine(url, pool_pre_ping=not url.startswith("sqlite"), hide_parameters=True)
    if url.startswith("sqlite"):
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver's own transaction handling would start them late, as readers, and then fail to
    # turn them into writers under load; see _begin_immediate.
    connection.isolation_level = None
    cursor = connection.cursor()
    # secure_delete: what was deleted is overwritten, not just marked as free.
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "busy_timeout=20000",
        "secure_delete=ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_immediate(connection: Any) -> None:
    # Waiting for the lock at the start is what busy_timeout can do; upgrading later is not.
    read_only = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


class SessionTables:
    """SessionStore and StatusStore over SQLModel; variables need a sealer."""

    def __init__(self, engine: Engine, sealer: Sealer | None = None) -> None:
        self._engine = engine
        self._sealer = sealer or Sealer(Path("/nonexistent"))
        self._readers = engine.execution_options(read_only=True)

    # Sessions

    def add(
        self,
        sessions: Sequence[Session],
        key: str | None,
        fingerprint: str,
        env: Mapping[str, str],
    ) -> tuple[list[Session], bool]:
        """Store all sessions of a launch, or return (earlier ones, False) for the same key."""
        owner = sessions[0].owner
        # A hash of few possible values would tell which: without the key its mark tells nothing.
        kept = self._sealer.mark(fingerprint) if env and key is not None else fingerprint
        try:
            with Database(self._engine) as db:
                if key is not None:
                    db.add(
                        LaunchKeyRow(
                            owner=owner,
                            key=key,
                            session=sessions[0].id,
                            fingerprint=kept,
                        )
                    )
                    db.flush()
                for session in sessions:
                    db.add(SessionRow(**session.model_dump()))
                    if env:
                        sealed = self._sealer.seal(json.dumps(dict(env)), place_of(session.id))
                        db.add(SessionEnvRow(session=session.id, variables=sealed))
                db.commit()
        except IntegrityError:
            if key is None:
                raise
            return self._earlier(owner, key, fingerprint), False
        return list(sessions), True

    def _earlier(self, owner: str, key: str, fingerprint: str) -> list[Session]:
        with Database(self._readers) as db:
            row = db.get(LaunchKeyRow, (owner, key))
            batch = select(SessionRow).where(_of_batch(row.session if row else ""))
            found = db.exec(batch).all()
            if row is None or not found:
                raise Conflict("A launch with this key was just refused. Use a new key.")
            known = row.fingerprint
            if known != fingerprint and not (
                is_sealed(known) and self._sealer.marks(known, fingerprint)
            ):
                raise KeyReused("This Idempotency-Key was used for a different request.")
            # All of one launch have the same stem: this is name1, name2, … name10.
            return [_session(r) for r in sorted(found, key=lambda r: (len(r.name), r.name))]

    def env(self, session: str) -> dict[str, str]:
        """A session's environment variables; none once they are forgotten. Raises Unreadable."""
        with Database(self._readers) as db:
            row = db.get(SessionEnvRow, session)
        if row is None:
            return {}
        sealed = is_sealed(row.variables)
        clear = self._sealer.open(row.variables, place_of(session)) if sealed else row.variables
        variables: dict[str, str] = json.loads(clear)
        return variables

    def forget_variables(self, before: datetime) -> None:
        """Forget the variables of sessions that ended before then."""
        over = select(SessionRow.id).where(
            col(SessionRow.state).in_(OVER), col(SessionRow.ended) < before
        )
        with Database(self._engine) as db:
            db.exec(delete(SessionEnvRow).where(col(SessionEnvRow.session).in_(over)))
            db.commit()

    def get(self, session: str) -> Session | None:
        """One session."""
        with Database(self._readers) as db:
            row = db.get(SessionRow, session)
            return _session(row) if row else None

    def apply(self, session: str, transition: Transition) -> Session | None:
        """Change a session's state; None, and nothing changed, when it does not fit any more."""
        if not transition:
            return None
        return self._update(
            session, transition.from_states, transition.known, dict(transition.changes)
        )

    def apply_to_all(self, sessions: Collection[str], transition: Transition) -> list[Session]:
        """The same for several sessions; returns those that were changed."""
        return self._update_all(col(SessionRow.id).in_(sessions), transition)

    def apply_to_batch(self, batch: str, transition: Transition) -> list[Session]:
        """The same for all sessions of one launch."""
        return self._update_all(_of_batch(batch), transition)

    def change(
        self, session: str, when: Collection[State], **facts: Unpack[Facts]
    ) -> Session | None:
        """Change a session that is in one of these states, but not its state; None otherwise."""
        return self._update(session, when, {}, dict(facts))

    def change_if(
        self,
        session: str,
        when: Collection[State],
        known: Mapping[str, object],
        **facts: Unpack[Facts],
    ) -> Session | None:
        """The same, if these fields still have the known values."""
        return self._update(session, when, known, dict(facts))

    def _update(
        self,
        session: str,
        when: Collection[State],
        known: Mapping[str, object],
        values: Mapping[str, object],
    ) -> Session | None:
        which = [col(SessionRow.id) == session, *_fitting(when, known)]
        with Database(self._engine) as db:
            done = db.exec(update(SessionRow).where(*which).values(**values))
            row = db.get(SessionRow, session) if done.rowcount else None
            result = _session(row) if row else None
            db.commit()
            return result

    def _update_all(self, which: Any, transition: Transition) -> list[Session]:
        with Database(self._engine) as db:
            fitting = _fitting(transition.from_states, transition.known)
            query = select(SessionRow).where(which, *fitting)
            rows = db.exec(query.with_for_update()).all()
            for row in rows:
                row.sqlmodel_update(dict(transition.changes))
            changed = [_session(row) for row in rows]
            db.commit()
            return changed

    def forget(self, batch: str, sessions: Collection[str]) -> None:
        """Remove sessions of a launch that never came to be, and the launch's key."""
        with Database(self._engine) as db:
            db.exec(delete(LaunchKeyRow).where(col(LaunchKeyRow.session) == batch))
            db.exec(delete(SessionEnvRow).where(col(SessionEnvRow.session).in_(sessions)))
            db.exec(delete(SessionRow).where(col(SessionRow.id).in_(sessions)))
            db.commit()

    def live(self) -> list[Session]:
        """All sessions that are not over."""
        return self._where(col(SessionRow.state).in_(LIVE))

    def unclean(self) -> list[Session]:
        """All that are over and still have files."""
        return self._where(col(SessionRow.state).in_(OVER), col(SessionRow.cleaned).is_(False))

    def unexplained(self, text: str, since: datetime) -> list[Session]:
        """All that ended since then with this text as their explanation."""
        return self._where(
            col(SessionRow.state).in_(OVER),
            col(SessionRow.ended) >= since,
            col(SessionRow.end_text) == text,
        )

    def ending(self, owner: str, before: datetime) -> list[Session]:
        """One owner's running sessions whose time is up before then, the next one first."""
        found = self._where(
            col(SessionRow.state) == State.RUNNING,
            col(SessionRow.owner) == owner,
            col(SessionRow.deadline) <= before,
        )
        return sorted(found, key=lambda session: (session.deadline or before, session.id))

    def _where(self, *conditions: Any) -> list[Session]:
        with Database(self._readers) as db:
            return [_session(row) for row in db.exec(select(SessionRow).where(*conditions))]

    def unused(self, owner: str, since: datetime) -> list[Session]:
        """One owner's running sessions that nobody has used since then."""
        return self._where(
            col(SessionRow.state) == State.RUNNING,
            col(SessionRow.owner) == owner,
            col(SessionRow.last_used) <= since,
        )

    def note_use(self, sessions: Collection[str], now: datetime) -> None:
        """These running sessions are in use."""
        which = col(SessionRow.id).in_(sessions), col(SessionRow.state) == State.RUNNING
        with Database(self._engine) as db:
            db.exec(update(SessionRow).where(*which).values(last_used=now))
            db.commit()

    def get_many(self, sessions: Collection[str]) -> list[Session]:
        """Those of these sessions that exist."""
        return self._where(col(SessionRow.id).in_(sessions))

    def query(self, query: ListQuery) -> Page:
        """One page of the list."""
        with Database(self._readers) as db:
            return query_page(db, query)

    def counts(self, owner: str | None) -> dict[State, int]:
        """How many sessions there are in each state, of one person or of all."""
        query = select(SessionRow.state, func.count()).group_by(col(SessionRow.state))
        if owner is not None:
            query = query.where(col(SessionRow.owner) == owner)
        with Database(self._readers) as db:
            return {State(state): number for state, number in db.exec(query)}

    def owners(self) -> list[str]:
        """Everybody who has ever had a session."""
        with Database(self._readers) as db:
            return list(db.exec(select(SessionRow.owner).distinct().order_by(SessionRow.owner)))

    # Status

    def note_answer(self, now: datetime) -> None:
        """Slurm answered."""
        self._cluster(answered=now, failing_since=None, message="")

    def note_failure(self, now: datetime, message: str) -> None:
        """Slurm did not answer; the first failure's time is kept."""
        since = func.coalesce(col(ClusterRow.failing_since), now)
        self._cluster(failing_since=since, message=message)

    def _cluster(self, **values: Any) -> None:
        with Database(self._engine) as db:
            if not db.get(ClusterRow, 1):
                db.add(ClusterRow(id=1))
                db.flush()
            db.exec(update(ClusterRow).values(**values))
            db.commit()

    def slurm_status(self) -> SlurmStatus:
        """When Slurm last answered."""
        with Database(self._readers) as db:
            row = db.get(ClusterRow, 1) or ClusterRow()
            return SlurmStatus(row.answered, row.failing_since, row.message, _use(row.use).rooms)

    def save_partitions(self, partitions: Sequence[Partition]) -> None:
        """Keep the partitions for everybody."""
        self._cluster(partitions=_PARTITIONS.dump_json(list(partitions)).decode())

    def partitions(self) -> list[Partition]:
        """The partitions as last read; [] before the first time."""
        with Database(self._readers) as db:
            row = db.get(ClusterRow, 1)
            return _PARTITIONS.validate_json(row.partitions) if row else []

    def save_limits(self, limits: Limits) -> None:
        """Keep Slurm's limits for everybody."""
        self._cluster(limits=_LIMITS.dump_json(limits).decode())

    def limits(self) -> Limits | None:
        """The limits as last read; None before the first time."""
        with Database(self._readers) as db:
            row = db.get(ClusterRow, 1)
            return _limits(row.limits) if row and row.limits else None

    def save_use(self, use: ClusterUsage) -> None:
        """Keep who holds what at this look."""
        self._cluster(use=_USE.dump_json(use).decode())

    def use(self) -> ClusterUsage:
        """Who held what at the last look."""
        with Database(self._readers) as db:
            row = db.get(ClusterRow, 1)
            return _use(row.use) if row else ClusterUsage()

    def save_measured(self, measured: TrafficSample) -> None:
        """Keep what browsers had sent to the apps."""
        self._cluster(measured=_MEASURED.dump_json(measured).decode())

    def measured(self) -> TrafficSample | None:
        """What they had sent at the last measurement."""
        with Database(self._readers) as db:
            row = db.get(ClusterRow, 1)
            return _MEASURED.validate_json(row.measured) if row and row.measured else None


_MEASURED = TypeAdapter(TrafficSample)
_PARTITIONS = TypeAdapter(list[Partition])
_LIMITS = TypeAdapter(Limits)
_USE = TypeAdapter(ClusterUsage)


@lru_cache(maxsize=2)
def _limits(text: str) -> Limits:
    # Large sites have thousands of associations, and pages ask every two seconds.
    return _LIMITS.validate_json(text)


@lru_cache(maxsize=2)
def _use(text: str) -> ClusterUsage:
    return _USE.validate_json(text) if text else ClusterUsage()


def _fitting(when: Collection[State], known: Mapping[str, object]) -> list[Any]:
    as_known = [getattr(SessionRow, name) == value for name, value in known.items()]
    return [col(SessionRow.state).in_(when), *as_known]


def _of_batch(batch: str) -> Any:
    # A session of before there were batches is one by itself.
    return or_(col(SessionRow.batch) == batch, col(SessionRow.id) == batch)


def _session(row: SessionRow) -> Session:
    return Session.model_validate(row, from_attributes=True)
