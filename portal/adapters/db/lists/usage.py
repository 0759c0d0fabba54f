"""Sums of what sessions used, by two indexes that hold all columns which are needed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Engine,
    and_,
    bindparam,
    case,
    distinct,
    extract,
    func,
    literal_column,
    or_,
    select,
)

from portal.adapters.db.tables import JournalRow, SessionRow, UtcDateTime
from portal.adapters.db.tables.admin import OPENED
from portal.core.admin.usage import By, Flow, Only, Share, Span
from portal.core.interfaces.admin.usage import UsageStore

_SESSION: Any = SessionRow.__table__  # type: ignore[attr-defined]
_JOURNAL: Any = JournalRow.__table__  # type: ignore[attr-defined]
_C = _SESSION.c
_FGPU = func.coalesce(_C.fgpu, 0.0)


class UsageTables(UsageStore):
    """UsageStore over SQLAlchemy's core: no row of the wide table is loaded."""

    def __init__(self, engine: Engine) -> None:
        self._readers = engine.execution_options(read_only=True)

    def flows(
        self, spans: Sequence[Span], only: Only | None
    ) -> tuple[Flow, list[Flow], list[Flow]]:
        where = _conditions(only)
        starts, ends = _flows(_C.started, where), _flows(_C.ended, where)
        with self._readers.connect() as db:
            return (
                _running(db, spans[0].begin, where),
                [_flow(db, starts, span) for span in spans],
                [_flow(db, ends, span) for span in spans],
            )

    def shares(self, by: By, begin: datetime, end: datetime) -> list[Share]:
        # Comparing the columns leaves one conversion of each time to seconds.
        over = case(
            (or_(_C.ended.is_(None), _C.ended > end), int(end.timestamp())),
            else_=_seconds(_C.ended),
        )
        begun = case((_C.started < begin, int(begin.timestamp())), else_=_seconds(_C.started))
        sums = (
            func.sum(case((_C.started >= begin, 1), else_=0)),
            func.sum(_C.cpus * (over - begun)),
            func.sum(_FGPU * (over - begun)),
        )
        # As expressions: SQLite would rather read all rows in the order of an index on owners.
        owner = func.coalesce(_C.owner, literal_column("''"))
        key = owner if by == "person" else func.coalesce(_key(by), literal_column("''"))
        query = (
            select(key.label("key"), owner.label("who"), *sums)
            .where(_C.started < end, or_(_C.ended.is_(None), _C.ended > begin))
            .group_by(*dict.fromkeys((owner, key)))
        )
        if by == "app":
            query = query.select_from(_SESSION.join(_OPENED, _OPENED.c.target == _C.id))
        with self._readers.connect() as db:
            return [
                Share(str(name), owner, int(number), float(cores), float(gpus))
                for name, owner, number, cores, gpus in db.execute(query)
            ]


_OPENED = (
    select(_JOURNAL.c.target, _JOURNAL.c.detail)
    .where(OPENED)  # as written in the index, or SQLite would not use it
    .distinct()
    .subquery("opened")
)


def _key(by: By) -> Any:
    match by:
        case "person":
            return _C.owner
        case "account":
            return _C.account
        case "environment":
            return _C.environment
        case "app":
            return _OPENED.c.detail


def _conditions(only: Only | None) -> list[Any]:
    if only is None:
        return []
    named = _key(only.by) == only.of
    by_default = and_(_C.account == "", _C.owner.in_(only.owners))
    return [or_(named, by_default) if only.owners else named]


def _running(db: Connection, begin: datetime, where: Sequence[Any]) -> Flow:
    query = select(func.coalesce(func.sum(_C.cpus), 0), func.coalesce(func.sum(_FGPU), 0.0)).where(
        _C.started < begin, or_(_C.ended.is_(None), _C.ended >= begin), *where
    )
    cpus, fgpu = db.execute(query).one()
    return Flow(cpus=int(cpus), fgpu=float(fgpu))


def _flows(column: Any, where: Sequence[Any]) -> Any:
    """The sums of the sessions whose time in this column is in a span; built once for all."""
    begin, end = bindparam("begin", type_=UtcDateTime), bindparam("end", type_=UtcDateTime)
    after = _seconds(column) - bindparam("second", type_=BigInteger)
    sums = (func.sum(_C.cpus), func.sum(_FGPU), func.sum(_C.cpus * after), func.sum(_FGPU * after))
    return select(
        func.count(), func.count(distinct(_C.owner)), *(func.coalesce(one, 0) for one in sums)
    ).where(column >= begin, column < end, _C.started.is_not(None), *where)


def _flow(db: Connection, query: Any, span: Span) -> Flow:
    second = int(span.begin.timestamp())
    found = db.execute(query, {"begin": span.begin, "end": span.end, "second": second}).one()
    sessions, people, cpus, fgpu, cpu_seconds, fgpu_seconds = found
    return Flow(sessions, people, int(cpus), float(fgpu), float(cpu_seconds), float(fgpu_seconds))


def _seconds(column: Any) -> Any:
    return extract("epoch", column)
