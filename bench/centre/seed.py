"""Stores sessions and grants in the portal's database; runs in the portal's container.

Reads from standard input who has which sessions, and prints nothing. Its rows are recognised by
their `preset`, so that they can be removed again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, delete, insert, select
from sqlmodel import SQLModel, col

from portal.config import load_settings
from portal.core.apps.access import AppState
from portal.core.auth.person import hash_secret
from portal.core.session.session import Cause, Session, State
from portal.store.engine import open_database
from portal.store.tables import AppRow, GrantRow, SessionRow

MARK = "bench.centre"
APP = "jupyterlab"
NOW = datetime.now(UTC)
BATCH = 500


def _session(row: dict[str, Any], **changes: Any) -> Session:
    started = NOW - timedelta(hours=1)
    return Session(
        id=row["id"], name=f"s{row['id'][:12]}", owner=row["owner"], environment="python",
        version="3.13", cpus=1, memory_mb=1024, preset=MARK, created=started, submitted=started,
        started=started, ready=started, token_hash=hash_secret(row["token"]),
        job_id=row["job"], node=row["node"], apps=(APP,), **changes,
    )  # fmt: skip


def running(rows: Iterable[dict[str, Any]], port: int) -> Iterator[Session]:
    """Sessions of jobs that run; nobody listens at their gateways' port."""
    for row in rows:
        yield _session(
            row, state=State.RUNNING, address=row["address"], port=port, last_used=NOW,
            usage_at=NOW, deadline=NOW + timedelta(hours=7), partition=row["partition"],
        )  # fmt: skip


def over(rows: Iterable[dict[str, Any]]) -> Iterator[Session]:
    """Sessions that ended a while ago."""
    for row in rows:
        yield _session(
            row, state=State.FINISHED, cause=Cause.FINISHED, ended=NOW - timedelta(minutes=30),
            end_text="It ended.", exit_code=0, cleaned=True, end_seen=NOW,
        )  # fmt: skip


def _add(engine: Engine, table: type[SQLModel], rows: Iterable[SQLModel]) -> None:
    values = [row.model_dump() for row in rows]
    for start in range(0, len(values), BATCH):
        with engine.begin() as database:
            database.execute(insert(table), values[start : start + BATCH])


def fill(engine: Engine, rows: dict[str, Any]) -> None:
    """Store what is described."""
    sessions = [*running(rows["running"], rows["port"]), *over(rows["over"])]
    _add(engine, SessionRow, (SessionRow(**session.model_dump()) for session in sessions))
    running_ids = [(row["id"], row["owner"]) for row in rows["running"]]
    _add(
        engine,
        AppRow,
        (
            AppRow(session=session, app=APP, label=f"c{session[:15]}", state=AppState.READY)
            for session, _ in running_ids
        ),
    )
    _add(engine, GrantRow, _grants(running_ids, rows["grants"]))


def _grants(sessions: list[tuple[str, str]], number: int) -> Iterator[GrantRow]:
    for count in range(number if sessions else 0):
        session, owner = sessions[count % len(sessions)]
        secret = hash_secret(f"{session} {count}")
        yield GrantRow(
            cookie_hash=secret, label=f"c{session[:15]}", session=session, app=APP, user=owner,
            login="", created=NOW,
        )  # fmt: skip


def empty(engine: Engine) -> None:
    """Remove all of it."""
    ours = select(col(SessionRow.id)).where(col(SessionRow.preset) == MARK)
    with engine.begin() as database:
        for table in (GrantRow, AppRow):
            database.execute(delete(table).where(col(table.session).in_(ours)))
        database.execute(delete(SessionRow).where(col(SessionRow.preset) == MARK))


def main() -> None:
    """Replace what an earlier run has stored."""
    engine = open_database(load_settings().state.database_url)
    rows = json.load(sys.stdin)
    empty(engine)
    if rows:
        fill(engine, rows)


if __name__ == "__main__":
    main()
