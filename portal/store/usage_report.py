"""Sums of sessions' resource usage, from two covering indexes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Engine,
    Float,
    Integer,
    and_,
    bindparam,
    case,
    distinct,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from portal.core.admin.usage_report import By, Flow, Share, Span, UsageFilter
from portal.core.session.holders import HOLDING
from portal.core.session.session import LIVE
from portal.store.tables import AuditRow, SessionRow, UtcDateTime
from portal.store.tables.admin import OPENED

_SESSION: Any = SessionRow.__table__  # type: ignore[attr-defined]
_AUDIT: Any = AuditRow.__table__  # type: ignore[attr-defined]
_C = _SESSION.c
_FGPU = func.coalesce(_C.fgpu, 0.0)


class _Seconds(FunctionElement[float]):
    """A time as seconds since 1970.

    SQLAlchemy's EXTRACT is strftime('%s') on SQLite, which takes twice as long as julianday();
    unixepoch() is faster still, but needs SQLite 3.38. julianday() is exact to a millisecond.
    """

    type = Float()
    inherit_cache = True


@compiles(_Seconds)
def _seconds_since_1970(element: _Seconds, compiler: SQLCompiler, **options: Any) -> str:
    return f"EXTRACT(EPOCH FROM {compiler.process(element.clauses, **options)})"


@compiles(_Seconds, "sqlite")
def _seconds_of_sqlite(element: _Seconds, compiler: SQLCompiler, **options: Any) -> str:
    return f"((julianday({compiler.process(element.clauses, **options)}) - 2440587.5) * 86400)"


class UsageStore:
    """Sums over all sessions; each method is one read-only transaction.

    Uses SQLAlchemy Core, so that no row of the wide session table is loaded as an object.
    """

    def __init__(self, engine: Engine) -> None:
        self._readers = engine.execution_options(read_only=True)

    def in_use(self) -> list[Any]:
        """Each owner of live sessions: sessions that hold resources and that wait, their sums, use.

        The sums: cores, MiB and fGPU; the last: when any of the sessions was last used.
        """
        holding = _C.state.in_(HOLDING)
        sums = (
            func.sum(case((holding, 1), else_=0)),
            func.sum(case((holding, 0), else_=1)),
            func.sum(case((holding, _C.cpus), else_=0)),
            func.sum(case((holding, _C.memory_mb), else_=0)),
            func.sum(case((holding, _FGPU), else_=0.0)),
            func.max(_C.last_used, type_=UtcDateTime),
        )
        query = select(_C.owner, *sums).where(_C.state.in_(LIVE)).group_by(_C.owner)
        with self._readers.connect() as db:
            return [tuple(row) for row in db.execute(query)]

    def flows(
        self, spans: Sequence[Span], only: UsageFilter | None
    ) -> tuple[Flow, list[Flow], list[Flow]]:
        """The sum of running sessions at the first begin, and of starts and ends in each span."""
        where = _conditions(only)
        starts, ends = _flows(_C.started, where), _flows(_C.ended, where)
        with self._readers.connect() as db:
            return (
                _running(db, spans[0].begin, where),
                [_flow(db, starts, span) for span in spans],
                [_flow(db, ends, span) for span in spans],
            )

    def shares(self, by: By, begin: datetime, end: datetime) -> list[Share]:
        """The usage of sessions from `begin` to `end`, by key and owner.

        Keys: the owner; the account that was chosen ("" for Slurm's default); the environment
        ("" for a user-supplied image); the apps that were opened, as the audit log names them.
        """
        # Columns are compared as they are, so that each time is converted to seconds once.
        over = case(
            (or_(_C.ended.is_(None), _C.ended > end), int(end.timestamp())),
            else_=_Seconds(_C.ended),
        )
        start = case((_C.started < begin, int(begin.timestamp())), else_=_Seconds(_C.started))
        sums = (
            func.sum(case((_C.started >= begin, 1), else_=0)),
            func.sum(_C.cpus * (over - start)),
            # Without fGPU the times are not converted again.
            func.sum(case((_C.fgpu > 0, _C.fgpu * (over - start)), else_=0.0)),
        )
        # Expressions, or SQLite would read all rows in the order of an index on owners.
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
    select(_AUDIT.c.target, _AUDIT.c.detail)
    .where(OPENED)  # as written in the index, or SQLite would not use it
    .distinct()
    .subquery("opened")
)


# Literals, not parameters: PostgreSQL must recognise the selected expression in GROUP BY.
_ONE: Any = literal_column("1", Integer())
_NAME = func.length(_OPENED.c.detail) - func.length(_C.name)
_APP = case(
    (
        func.substr(_OPENED.c.detail, _NAME + _ONE) == _C.name,
        func.substr(_OPENED.c.detail, _ONE, _NAME),
    ),
    else_=_OPENED.c.detail,
)
"""The audit log's "JupyterLab of tidy-crane" without the session's name, so that groups are few.

An event of a session that was renamed since keeps the old name, and is a separate group.
"""


def _key(by: By) -> Any:
    match by:
        case "person":
            return _C.owner
        case "account":
            return _C.account
        case "environment":
            return _C.environment
        case "app":
            return _APP


def _conditions(only: UsageFilter | None) -> list[Any]:
    if only is None:
        return []
    by_key = _key(only.by) == only.of
    by_default = and_(_C.account == "", _C.owner.in_(only.owners))
    return [or_(by_key, by_default) if only.owners else by_key]


def _running(db: Connection, begin: datetime, where: Sequence[Any]) -> Flow:
    query = select(func.coalesce(func.sum(_C.cpus), 0), func.coalesce(func.sum(_FGPU), 0.0)).where(
        _C.started < begin, or_(_C.ended.is_(None), _C.ended >= begin), *where
    )
    cpus, fgpu = db.execute(query).one()
    return Flow(cpus=int(cpus), fgpu=float(fgpu))


def _flows(column: Any, where: Sequence[Any]) -> Any:
    """The query of the sums of sessions whose time in this column is in a span."""
    begin, end = bindparam("begin", type_=UtcDateTime), bindparam("end", type_=UtcDateTime)
    after = _Seconds(column) - bindparam("second", type_=BigInteger)
    fgpu_seconds = func.sum(case((_C.fgpu > 0, _C.fgpu * after), else_=0.0))
    sums = (func.sum(_C.cpus), func.sum(_FGPU), func.sum(_C.cpus * after), fgpu_seconds)
    return select(
        func.count(), func.count(distinct(_C.owner)), *(func.coalesce(total, 0) for total in sums)
    ).where(column >= begin, column < end, _C.started.is_not(None), *where)


def _flow(db: Connection, query: Any, span: Span) -> Flow:
    second = int(span.begin.timestamp())
    row = db.execute(query, {"begin": span.begin, "end": span.end, "second": second}).one()
    sessions, people, cpus, fgpu, cpu_seconds, fgpu_seconds = row
    return Flow(sessions, people, int(cpus), float(fgpu), float(cpu_seconds), float(fgpu_seconds))
