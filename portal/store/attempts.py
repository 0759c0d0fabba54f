"""Login attempts, counted in the database for all processes and hosts."""

from __future__ import annotations

from collections.abc import Sequence

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
_REMEMBER = text(
    'INSERT INTO known_network ("user", network, seen) VALUES (:user, :network, :now) '
    'ON CONFLICT ("user", network) DO UPDATE SET seen = excluded.seen'
)
_COUNT = text(
    'INSERT INTO refusal (network, hour, "user", count) VALUES (:network, :hour, :user, 1) '
    'ON CONFLICT (network, hour, "user") DO UPDATE SET count = refusal.count + 1 RETURNING count'
)


class AttemptStore:
    """Login attempts, counted across all processes. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def take(self, key: str, now: int, interval: int, burst: int) -> int:
        """Take one of `burst` attempts; one is regained each `interval`. Times in ms.

        Returns 0, or the time until the next attempt.
        """
        latest = now + interval * (burst - 1)
        # A flood of refused attempts must not wait for the database's single writer.
        if (wait := self._until(key) - latest) > 0:
            return wait
        values = {"key": key, "now": now, "interval": interval, "latest": latest}
        with self._engine.begin() as connection:
            if connection.execute(_TAKE, values).first() is not None:
                return 0
        return max(self._until(key) - latest, 1)

    def _until(self, key: str) -> int:
        with reading(self._readers) as db:
            row = db.get(AttemptRow, key)
            return row.until if row else 0

    def give_back(self, key: str, interval: int) -> None:
        """Undo the last `take`."""
        with self._engine.begin() as connection:
            back = text("UPDATE attempt SET until = until - :interval WHERE key = :key")
            connection.execute(back, {"key": key, "interval": interval})

    def forgive(self, key: str) -> None:
        """Reset the rate limit of a key."""
        with Database(self._engine) as db:
            db.exec(delete(AttemptRow).where(col(AttemptRow.key) == key))
            db.commit()

    def knows(self, user: str, network: str) -> bool:
        """Whether this account has logged in from this network."""
        with reading(self._readers) as db:
            return db.get(KnownNetworkRow, (user, network)) is not None

    def remember(self, user: str, network: str, now: int) -> None:
        """Record that this account has logged in from this network."""
        with self._engine.begin() as connection:
            connection.execute(_REMEMBER, {"user": user, "network": network, "now": now})

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
