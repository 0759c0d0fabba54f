"""Login attempts, counted in the database for all processes and hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, text
from sqlmodel import Session as Database
from sqlmodel import col, delete, func, select

from portal.core.auth.logins import FailedAttempts
from portal.store.reading import reading
from portal.store.tables import AttemptRow, KnownNetworkRow, RefusalRow

# GCRA in one statement, so that concurrent attempts cannot exceed the burst. The syntax works in
# SQLite and PostgreSQL.
_TAKE = text(
    "INSERT INTO attempt (key, until) VALUES (:key, :now + :interval) "
    "ON CONFLICT (key) DO UPDATE SET until = :interval + "
    "CASE WHEN attempt.until > :now THEN attempt.until ELSE :now END "
    "WHERE attempt.until <= :latest RETURNING until"
)
_ADD = text(
    "INSERT INTO attempt (key, until) VALUES (:key, :now + :interval) "
    "ON CONFLICT (key) DO UPDATE SET until = :interval + "
    "CASE WHEN attempt.until > :now THEN attempt.until ELSE :now END"
)
_GIVE_BACK = text("UPDATE attempt SET until = until - :interval WHERE key = :key")
_REMEMBER = text(
    'INSERT INTO known_network ("user", network, seen) VALUES (:user, :network, :now) '
    'ON CONFLICT ("user", network) DO UPDATE SET seen = excluded.seen'
)
_COUNT = text(
    'INSERT INTO refusal (network, hour, "user", count) VALUES (:network, :hour, :user, 1) '
    'ON CONFLICT (network, hour, "user") DO UPDATE SET count = refusal.count + 1 RETURNING count'
)


@dataclass(frozen=True)
class Limit:
    """A rate limit: `burst` events at once; one is regained each `interval` ms."""

    key: str
    interval: int
    burst: int

    @property
    def tolerance(self) -> int:
        """How far ahead of the time an event may be."""
        return self.interval * (self.burst - 1)


class AttemptStore:
    """Login attempts, counted across all processes. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def take(self, limit: Limit, now: int) -> int:
        """Take one event of a limit; returns 0, or the time until there is one. Times in ms."""
        # A flood of refused attempts must not wait for the database's single writer.
        if wait := self.until_room(now, limit)[0]:
            return wait
        latest = now + limit.tolerance
        values = {"key": limit.key, "now": now, "interval": limit.interval, "latest": latest}
        with self._engine.begin() as connection:
            if connection.execute(_TAKE, values).first() is not None:
                return 0
        return max(self.until_room(now, limit)[0], 1)

    def until_room(self, now: int, *limits: Limit) -> list[int]:
        """The time until each limit has room for an event; 0 if it has."""
        keys = [limit.key for limit in limits]
        with reading(self._readers) as db:
            rows = db.exec(select(AttemptRow).where(col(AttemptRow.key).in_(keys)))
            until = {row.key: row.until for row in rows}
        return [max(until.get(limit.key, 0) - now - limit.tolerance, 0) for limit in limits]

    def add(self, limit: Limit, now: int) -> None:
        """Count an event that has happened, even beyond the limit: the next ones wait for it."""
        values = {"key": limit.key, "now": now, "interval": limit.interval}
        with self._engine.begin() as connection:
            connection.execute(_ADD, values)

    def give_back(self, limit: Limit) -> None:
        """Undo the last `take`."""
        with self._engine.begin() as connection:
            connection.execute(_GIVE_BACK, {"key": limit.key, "interval": limit.interval})

    def knows(self, user: str, network: str) -> bool:
        """Whether this account has logged in from this network."""
        with reading(self._readers) as db:
            return db.get(KnownNetworkRow, (user, network)) is not None

    def succeeded(
        self,
        user: str,
        network: str,
        now: int,
        counted: Limit | None = None,
        taken: Limit | None = None,
    ) -> None:
        """Record that an account has logged in from a network: count it, and undo a `take`."""
        with self._engine.begin() as connection:
            connection.execute(_REMEMBER, {"user": user, "network": network, "now": now})
            if counted:
                values = {"key": counted.key, "now": now, "interval": counted.interval}
                connection.execute(_ADD, values)
            if taken:
                connection.execute(_GIVE_BACK, {"key": taken.key, "interval": taken.interval})

    def refused(self, user: str, network: str, hour: int, names: int) -> FailedAttempts:
        """Count a wrong password; more than `names` names from one network share one count."""
        conditions = (col(RefusalRow.network) == network, col(RefusalRow.hour) == hour)
        with reading(self._readers) as db:
            is_counted = db.get(RefusalRow, (network, hour, user)) is not None
            if not is_counted and db.exec(select(func.count()).where(*conditions)).one() >= names:
                user = ""
        with self._engine.begin() as connection:
            values = {"network": network, "hour": hour, "user": user}
            count = connection.execute(_COUNT, values).scalar_one()
        return FailedAttempts(user, network, hour, count)

    def refusals_before(self, hour: int) -> Sequence[FailedAttempts]:
        """The counts of hours before this one."""
        with reading(self._readers) as db:
            rows = db.exec(select(RefusalRow).where(col(RefusalRow.hour) < hour))
            return [FailedAttempts(**row.model_dump()) for row in rows]

    def drop_refusals(self, count: FailedAttempts) -> None:
        """Delete a count."""
        conditions = (
            col(RefusalRow.network) == count.network,
            col(RefusalRow.hour) == count.hour,
            col(RefusalRow.user) == count.user,
        )
        with Database(self._engine) as db:
            db.exec(delete(RefusalRow).where(*conditions))
            db.commit()

    def expire(self, now: int, known_before: int) -> None:
        """Delete expired attempts and networks; times in ms."""
        with Database(self._engine) as db:
            db.exec(delete(AttemptRow).where(col(AttemptRow.until) < now))
            db.exec(delete(KnownNetworkRow).where(col(KnownNetworkRow.seen) < known_before))
            db.commit()
