"""Sessions as rows of the database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from portal.core.session.session import Cause, Session, State
from portal.store.encryption import Sealer
from portal.store.engine import open_database
from portal.store.sessions import SessionStore


def store_session(folder: Path, **changes: object) -> Session:
    """A session in the database."""
    now = datetime.now(UTC)
    found = Session.model_validate(
        {
            "id": "a" * 32, "name": "silver1", "owner": "alice", "environment": "python",
            "version": "1", "cpus": 1, "memory_mb": 100, "created": now, "token_hash": "x",
            "submitted": now, **changes,
        }
    )  # fmt: skip
    engine = open_database(f"sqlite:///{folder}/slipway.db")
    SessionStore(engine, Sealer(folder / "keys")).add([found], None, "", {})
    engine.dispose()
    return found


NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def ended_session(**changes: object) -> Session:
    """A session that ran for an hour."""
    values: dict[str, object] = {
        "id": "0" * 32,
        "name": "silverember51",
        "owner": "alice",
        "environment": "python",
        "version": "3.13",
        "cpus": 1,
        "memory_mb": 600,
        "created": NOON,
        "submitted": NOON,
        "token_hash": "x",
        "job_id": "7",
        "started": NOON,
        "ready": NOON,
        "deadline": NOON + timedelta(minutes=60),
        "state": State.FINISHED,
        "cause": Cause.TIME_LIMIT,
        "end_text": "The explanation.",
    }
    return Session.model_validate(values | changes)


def numbered_session(number: int, **changes: object) -> Session:
    """A session whose fields depend on its number."""
    values = {
        "id": f"{number:032x}",
        "name": f"session{number}",
        "owner": "alice",
        "environment": "python",
        "version": "3.13",
        "cpus": 1,
        "memory_mb": 600,
        "state": State.PENDING,
        "created": NOON + timedelta(seconds=number // 3),  # some share a second
        "submitted": NOON,
        "token_hash": "x",
    }
    return Session.model_validate({**values, **changes})
