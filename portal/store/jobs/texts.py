"""Writes what owners wrote into their jobs, and recognises jobs of sessions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update
from sqlmodel import Session as Database
from sqlmodel import col

from portal.core.jobs.job import JobTexts
from portal.store.jobs.rows import JOBS, TEXTS, Values, shown_name, text_values
from portal.store.tables import SessionRow


def by_number(db: Database, assigned: Mapping[str, Any], rows: list[Values]) -> None:
    """Update rows by their numbers ("_number"), each with its own values."""
    statement = update(JOBS).where(JOBS.c.number == bindparam("_number")).values(**assigned)
    db.connection().execute(statement, rows)


def save_texts(db: Database, texts: Mapping[int, JobTexts]) -> None:
    """Store the texts of these jobs, but of unknown ones."""
    if not texts:
        return
    numbers = list(texts)
    owners = dict(
        db.execute(select(JOBS.c.number, JOBS.c.owner).where(JOBS.c.number.in_(numbers))).all()
    )
    known = {number: one for number, one in texts.items() if number in owners}
    if not known:
        return
    sessions = _sessions_named(db, {one.name for one in known.values()})
    rows = []
    for number, one in known.items():
        name = shown_name(one.name)
        owner, job_id = sessions.get(one.name, ("", None))
        is_its = owner == owners[number] and job_id in (None, str(number))
        rows.append(
            {
                "_number": number,
                "_name": name,
                "_key": name.lower()[:200],
                "_session": one.name if is_its else None,
                "_texted": True,
            }
        )
    assigned = {"name": "_name", "name_key": "_key", "session": "_session", "texted": "_texted"}
    by_number(db, {column: bindparam(key) for column, key in assigned.items()}, rows)
    db.execute(delete(TEXTS).where(TEXTS.c.number.in_(list(known))))
    kept = [{"number": n, **text_values(one)} for n, one in known.items()]
    db.execute(insert(TEXTS), kept)


def _sessions_named(db: Database, names: Collection[str]) -> dict[str, tuple[str, str | None]]:
    """The sessions with these ids: owner and job. A session's job has its id as name."""
    wanted = [name for name in names if len(name) == 32 and name.isalnum() and name.isascii()]
    columns = col(SessionRow.id), col(SessionRow.owner), col(SessionRow.job_id)
    found = select(*columns).where(col(SessionRow.id).in_(wanted))
    return {session: (owner, job_id) for session, owner, job_id in db.execute(found)}
