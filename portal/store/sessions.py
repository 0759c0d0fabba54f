"""Sessions, their variables and launch keys in the database.

Updates of a session compare its state in the same statement: the web application, the worker and
a runner's call may write to one row concurrently, and none overwrites another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Unpack

from sqlalchemy import Connection, Engine, Row, String, bindparam, func, or_, type_coerce
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import SQLModel, col, delete, select, update

from portal.core.apps.access import AppState
from portal.core.launch.hub import APP
from portal.core.launch.names import distinct_names
from portal.core.session.ended_lately import EndedLately
from portal.core.session.holders import HOLDING
from portal.core.session.query import ListQuery, Page
from portal.core.session.session import LIVE, OVER, Facts, Session, State
from portal.core.session.transitions import Transition
from portal.errors import Conflict, KeyReused
from portal.store.encryption import Sealer, is_sealed
from portal.store.reading import reading, reading_rows
from portal.store.reencrypt import session_aad
from portal.store.session_query import count_states, query_page
from portal.store.tables import AppRow, LaunchKeyRow, SessionEnvRow, SessionRow


class SessionStore:
    """Sessions, their variables and launch keys. Every method is one transaction.

    Variables are encrypted; reading and writing them requires a sealer.
    """

    def __init__(self, engine: Engine, sealer: Sealer | None = None) -> None:
        self._engine = engine
        self._sealer = sealer or Sealer(Path("/nonexistent"))
        self._readers = engine.execution_options(read_only=True)
        self._live: dict[str, tuple[Row[Any], Session]] = {}
        """The result of `live` with its rows: few of them change between two polls of Slurm."""

    def add(
        self,
        sessions: Sequence[Session],
        key: str | None,
        fingerprint: str,
        env: Mapping[str, str],
        hub_env: Mapping[str, str] | None = None,
    ) -> tuple[list[Session], bool]:
        """Store all sessions of a launch and return (them as stored, True).

        Names that live sessions of the owner already have get a number, in the same transaction,
        so that concurrent launches get distinct names.

        `key` is the Idempotency-Key: if the owner has already used it with the same `fingerprint`,
        returns (the sessions of that launch, False). Raises KeyReused if the fingerprint differs,
        and Conflict if that launch has just been refused, or if a live session has JupyterHub's
        server at the same path; `hub_env` are that server's variables.
        """
        owner = sessions[0].owner
        # A plain hash of guessable values could be reversed; a keyed one requires the key.
        secret = bool(env or hub_env)
        stored = self._sealer.mark(fingerprint) if secret and key is not None else fingerprint
        try:
            with Database(self._engine) as db:
                if key is not None:
                    db.add(
                        LaunchKeyRow(
                            owner=owner,
                            key=key,
                            session=sessions[0].id,
                            fingerprint=stored,
                        )
                    )
                    db.flush()
                named_sessions = _named_apart(db, sessions)
                for session in named_sessions:
                    db.add(SessionRow(**session.model_dump()))
                    if env or hub_env:
                        db.add(self._env_row(session.id, env, hub_env or {}))
                    if session.hub_prefix:
                        db.add(_hub_app(session))
                db.commit()
        except IntegrityError:
            if key is not None and (earlier := self._earlier(owner, key, fingerprint)):
                return earlier, False
            raise self._taken(sessions[0].hub_prefix) from None
        return named_sessions, True

    def _env_row(
        self, session: str, env: Mapping[str, str], hub_env: Mapping[str, str]
    ) -> SessionEnvRow:
        sealed, hub = (
            self._sealer.seal(json.dumps(dict(variables)), session_aad(session))
            if variables
            else ""
            for variables in (env, hub_env)
        )
        return SessionEnvRow(session=session, variables=sealed, hub=hub)

    def _taken(self, prefix: str) -> Conflict:
        conditions = (col(SessionRow.hub_prefix) == prefix, col(SessionRow.state).in_(LIVE))
        with reading(self._readers) as db:
            holder = db.exec(select(SessionRow).where(*conditions)).first() if prefix else None
        if holder is None:
            return Conflict("The session could not be stored. Please try again.")
        return Conflict(f"The session {holder.id} has JupyterHub's server at {prefix} already.")

    def _earlier(self, owner: str, key: str, fingerprint: str) -> list[Session]:
        """The sessions of an earlier launch with this key; [] if the key was not used."""
        with reading(self._readers) as db:
            row = db.get(LaunchKeyRow, (owner, key))
            if row is None:
                return []
            rows = db.exec(select(SessionRow).where(_of_batch(row.session))).all()
            if not rows:
                raise Conflict("A launch with this key was just refused. Use a new key.")
            stored = row.fingerprint
            if stored != fingerprint and not (
                is_sealed(stored) and self._sealer.marks(stored, fingerprint)
            ):
                raise KeyReused("This Idempotency-Key was used for a different request.")
            # Names of one launch have the same stem: this sorts name1, name2, … name10.
            return [_session(r) for r in sorted(rows, key=lambda r: (len(r.name), r.name))]

    def has_key(self, owner: str, key: str) -> bool:
        """Whether the owner has already used this Idempotency-Key."""
        with reading(self._readers) as db:
            return db.get(LaunchKeyRow, (owner, key)) is not None

    def env(self, session: str) -> dict[str, str]:
        """A session's environment variables with their values; {} once they are deleted.

        Raises Unavailable if the key that encrypts them is missing.
        """
        with reading(self._readers) as db:
            row = db.get(SessionEnvRow, session)
        return self._opened(session, row.variables if row else "")

    def hub_env(self, session: str) -> dict[str, str]:
        """The variables of JupyterHub's server in a session; {} once it is over."""
        with reading(self._readers) as db:
            row = db.get(SessionEnvRow, session)
        return self._opened(session, row.hub if row else "")

    def _opened(self, session: str, stored: str) -> dict[str, str]:
        clear = self._sealer.open(stored, session_aad(session)) if is_sealed(stored) else stored
        variables: dict[str, str] = json.loads(clear or "{}")
        return variables

    def forget_hub_env(self) -> None:
        """Delete the variables of JupyterHub's servers in sessions that are over."""
        over = select(SessionRow.id).where(col(SessionRow.state).in_(OVER))
        conditions = (col(SessionEnvRow.hub) != "", col(SessionEnvRow.session).in_(over))
        with Database(self._engine) as db:
            db.exec(update(SessionEnvRow).where(*conditions).values(hub=""))
            db.commit()

    def forget_variables(self, before: datetime) -> None:
        """Delete the variables of sessions that ended before a time."""
        over = select(SessionRow.id).where(
            col(SessionRow.state).in_(OVER), col(SessionRow.ended) < before
        )
        with Database(self._engine) as db:
            db.exec(delete(SessionEnvRow).where(col(SessionEnvRow.session).in_(over)))
            db.commit()

    def get(self, session: str) -> Session | None:
        """One session; None if there is none of this id."""
        with reading_rows(self._readers) as connection:
            return _read(connection, session)

    def apply(self, session: str, transition: Transition) -> Session | None:
        """Apply a transition; None, without a change, if the stored session does not fit it."""
        if not transition:
            return None
        return self._update(
            session, transition.from_states, transition.expected, dict(transition.changes)
        )

    def apply_to_all(self, sessions: Collection[str], transition: Transition) -> list[Session]:
        """Apply a transition to several sessions; returns those that changed."""
        return self._update_all(col(SessionRow.id).in_(sessions), lambda _: transition)

    def apply_to_batch(
        self, batch: str, transition_of: Callable[[Session], Transition]
    ) -> list[Session]:
        """Apply a transition to each session of one launch; returns those that changed."""
        return self._update_all(_of_batch(batch), transition_of)

    def change(
        self, session: str, when: Collection[State], **facts: Unpack[Facts]
    ) -> Session | None:
        """Update a session whose state is one of `when`, and return it; otherwise None."""
        return self._update(session, when, {}, dict(facts))

    def change_if(
        self,
        session: str,
        when: Collection[State],
        expected: Mapping[str, object],
        **facts: Unpack[Facts],
    ) -> Session | None:
        """Update a session if its state is one of `when` and it still has the values `expected`.

        A compare-and-set: returns None, without a change, if another value was stored meanwhile.
        """
        return self._update(session, when, expected, dict(facts))

    def _update(
        self,
        session: str,
        when: Collection[State],
        expected: Mapping[str, object],
        values: Mapping[str, object],
    ) -> Session | None:
        conditions = [col(SessionRow.id) == session, *_fitting(when, expected)]
        with Database(self._engine) as db:
            result = db.exec(update(SessionRow).where(*conditions).values(**values))
            session_after = _read(db.connection(), session) if result.rowcount else None
            db.commit()
            return session_after

    def _update_all(
        self, condition: Any, transition_of: Callable[[Session], Transition]
    ) -> list[Session]:
        changed = []
        with Database(self._engine) as db:
            rows = db.exec(select(SessionRow).where(condition).with_for_update()).all()
            for row in rows:
                session = _session(row)
                transition = transition_of(session)
                if transition.fits(session):
                    row.sqlmodel_update(dict(transition.changes))
                    changed.append(_session(row))
            db.commit()
        return changed

    def forget(self, batch: str, sessions: Collection[str]) -> None:
        """Delete sessions of a launch that was refused, and the launch's key."""
        with Database(self._engine) as db:
            db.exec(delete(LaunchKeyRow).where(col(LaunchKeyRow.session) == batch))
            db.exec(delete(SessionEnvRow).where(col(SessionEnvRow.session).in_(sessions)))
            db.exec(delete(SessionRow).where(col(SessionRow.id).in_(sessions)))
            db.commit()

    def keep_waiting(self, sessions: Collection[str], since: datetime, now: datetime) -> None:
        """Note that those that were created since a time, and of which no submission was begun,
        wait for one, and are not abandoned.
        """
        unbegun = _fitting({State.SUBMITTING}, {"attempts": 0})
        with Database(self._engine) as db:
            db.exec(
                update(SessionRow)
                .where(col(SessionRow.id).in_(sessions), col(SessionRow.created) >= since, *unbegun)
                .values(submitted=now)
            )
            db.commit()

    def submitting(self, owner: str) -> list[Session]:
        """An owner's sessions that Slurm does not have yet, in any order."""
        return self._where(
            col(SessionRow.owner) == owner, col(SessionRow.state) == State.SUBMITTING
        )

    def live(self) -> list[Session]:
        """All sessions that have not ended."""
        query = select(*_COLUMNS).where(col(SessionRow.state).in_(LIVE))
        with reading_rows(self._readers) as connection:
            rows = connection.execute(query).all()
        before, live = self._live, dict[str, tuple[Row[Any], Session]]()
        for row in rows:
            known = before.get(row.id)
            live[row.id] = known if known and known[0] == row else (row, _validated(row))
        self._live = live
        return [session for _, session in live.values()]

    def mounting(self, owner: str) -> list[Session]:
        """A user's live sessions, and those of others that mount one of the user's folders."""
        mounts = type_coerce(col(SessionRow.mounts), String)
        shared = mounts.contains(f'"folder": "{owner}/', autoescape=True)
        return self._where(
            col(SessionRow.state).in_(LIVE), or_(col(SessionRow.owner) == owner, shared)
        )

    def hub_prefixes(self) -> dict[str, str]:
        """The paths of JupyterHub's servers in live sessions, by the session's id."""
        query = select(SessionRow.id, SessionRow.hub_prefix).where(
            col(SessionRow.hub_prefix) != "", col(SessionRow.state).in_(LIVE)
        )
        with reading(self._readers) as db:
            return dict(db.exec(query).all())

    def with_wanted_apps(self, before: datetime) -> list[Session]:
        """Running sessions that called back before a time, with apps whose start was not sent."""
        wanted = select(AppRow.session).where(col(AppRow.state) == AppState.WANTED)
        return self._where(
            col(SessionRow.id).in_(wanted),
            col(SessionRow.state) == State.RUNNING,
            col(SessionRow.ready) < before,
        )

    def requeued(self) -> list[Session]:
        """Pending sessions that Slurm has requeued, without a new secret yet."""
        return self._where(col(SessionRow.state) == State.PENDING, col(SessionRow.token_hash) == "")

    def starting_since(self, before: datetime) -> list[Session]:
        """Sessions whose jobs started before a time and whose runners have not called back."""
        return self._where(
            col(SessionRow.state) == State.STARTING, col(SessionRow.started) < before
        )

    def unclean(self) -> list[Session]:
        """All ended sessions whose files have not been deleted yet."""
        return self._where(col(SessionRow.state).in_(OVER), col(SessionRow.cleaned).is_(False))

    def unexplained(self, text: str, since: datetime) -> list[Session]:
        """All sessions that ended since a time with this text as the explanation."""
        return self._where(
            col(SessionRow.state).in_(OVER),
            col(SessionRow.ended) >= since,
            col(SessionRow.end_text) == text,
        )

    def ending(self, owner: str, before: datetime) -> list[Session]:
        """An owner's running sessions with a deadline before a time, soonest first."""
        sessions = self._where(
            col(SessionRow.state) == State.RUNNING,
            col(SessionRow.owner) == owner,
            col(SessionRow.deadline) <= before,
        )
        return sorted(sessions, key=lambda session: (session.deadline or before, session.id))

    def _where(self, *conditions: Any) -> list[Session]:
        with reading_rows(self._readers) as connection:
            return list(map(_validated, connection.execute(select(*_COLUMNS).where(*conditions))))

    def unused(self, owner: str, since: datetime) -> list[Session]:
        """An owner's running sessions that have been unused since a time, in any order."""
        return self._where(
            col(SessionRow.state) == State.RUNNING,
            col(SessionRow.owner) == owner,
            col(SessionRow.last_used) <= since,
        )

    def changed_since(self, owner: str, since: datetime, soon: datetime) -> list[Session]:
        """An owner's sessions that have become ready or ended since, or run and end by `soon`."""
        ends_soon = (col(SessionRow.state) == State.RUNNING) & (col(SessionRow.deadline) <= soon)
        lately = (col(SessionRow.ready) >= since, col(SessionRow.ended) >= since)
        return self._where(col(SessionRow.owner) == owner, or_(*lately, ends_soon))

    def ended_unseen(self, owner: str, since: datetime, most: int) -> EndedLately:
        """An owner's ends since a time that they have not seen, the newest `most` of them."""
        # The same statement counts all of them, in the index.
        query = (
            select(SessionRow, func.count().over())
            .where(*_unseen(owner), col(SessionRow.ended) >= since)
            .order_by(col(SessionRow.ended).desc(), col(SessionRow.id))
            .limit(most)
        )
        with reading(self._readers) as db:
            rows = db.exec(query).all()
        count = rows[0][1] if rows else 0
        return EndedLately(tuple(_session(row) for row, _ in rows), count)

    def see_ends(self, owner: str, until: datetime, now: datetime) -> int:
        """Mark all ends of an owner up to a time as seen; returns how many were not."""
        conditions = (*_unseen(owner), col(SessionRow.ended) <= until)
        with Database(self._engine) as db:
            result = db.exec(update(SessionRow).where(*conditions).values(end_seen=now))
            db.commit()
            return result.rowcount

    def note_use(self, sessions: Collection[str], now: datetime) -> None:
        """Set the time of last use of the running ones of these sessions."""
        conditions = col(SessionRow.id).in_(sessions), col(SessionRow.state) == State.RUNNING
        with Database(self._engine) as db:
            db.exec(update(SessionRow).where(*conditions).values(last_used=now))
            db.commit()

    def get_many(self, sessions: Collection[str]) -> list[Session]:
        """These sessions, as far as they exist, in any order."""
        return self._where(col(SessionRow.id).in_(sessions))

    def holding(self, owners: Collection[str]) -> list[Session]:
        """The sessions of these owners that hold their resources, in any order."""
        return self._where(col(SessionRow.owner).in_(owners), col(SessionRow.state).in_(HOLDING))

    def query(self, query: ListQuery, now: datetime) -> Page:
        """One page of the list."""
        with reading(self._readers) as db:
            return query_page(db, query, now)

    def counts(self, query: ListQuery, now: datetime) -> dict[State, int]:
        """Number of sessions in each state that match all filters but the tab and the status."""
        with reading(self._readers) as db:
            return count_states(db, query, now)

    def owners(self, most: int) -> list[str]:
        """Owners of sessions, sorted; at most `most`."""
        query = select(SessionRow.owner).distinct().order_by(SessionRow.owner).limit(most)
        with reading(self._readers) as db:
            return list(db.exec(query))


def _unseen(owner: str) -> list[Any]:
    return [
        col(SessionRow.owner) == owner,
        col(SessionRow.end_seen).is_(None),
        col(SessionRow.state).in_(OVER),
    ]


def _named_apart(db: Database, sessions: Sequence[Session]) -> list[Session]:
    # In a writing transaction, so that concurrent launches wait for each other.
    live = select(SessionRow.name).where(
        col(SessionRow.owner) == sessions[0].owner, col(SessionRow.state).in_(LIVE)
    )
    names = distinct_names([session.name for session in sessions], db.exec(live))
    return [
        session if session.name == name else session.model_copy(update={"name": name})
        for session, name in zip(sessions, names, strict=True)
    ]


def _fitting(when: Collection[State], expected: Mapping[str, object]) -> list[Any]:
    as_known = [getattr(SessionRow, name) == value for name, value in expected.items()]
    return [col(SessionRow.state).in_(when), *as_known]


def _of_batch(batch: str) -> Any:
    # A session without a batch is the only one of its launch.
    return or_(col(SessionRow.batch) == batch, col(SessionRow.id) == batch)


# Columns, not rows of the ORM: those take twice as long, and nobody changes them.
_COLUMNS = tuple(SQLModel.metadata.tables["session"].columns)
_ONE = select(*_COLUMNS).where(col(SessionRow.id) == bindparam("session"))


def _read(connection: Connection, session: str) -> Session | None:
    row = connection.execute(_ONE, {"session": session}).first()
    return _validated(row) if row else None


def _validated(row: Row[Any]) -> Session:
    return Session.model_validate(row._asdict())


def _session(row: SessionRow) -> Session:
    return Session.model_validate(row, from_attributes=True)


def _hub_app(session: Session) -> AppRow:
    """JupyterHub's server in a session; it starts with the session and has no origin."""
    return AppRow(session=session.id, app=APP, label=session.id, state=AppState.WANTED)
