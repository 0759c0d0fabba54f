"""Counts of changes, which the database keeps by triggers.

A page that polls compares a few counts instead of reading and rendering its content again. Triggers
count the changes of every writer, on any host. A scope is PERSON and a user's name for what belongs
to that user, SITE for what all pages show, or USE and LIMITS, which change at all times, for the
cluster's use and for Slurm's limits with what accounts have used of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from sqlalchemy import BigInteger, Connection, MetaData, event
from sqlmodel import Field, SQLModel

PERSON, SITE, USE, LIMITS = "person ", "site", "use", "limits"
OF_ALL = (SITE, USE, LIMITS)
"""The scopes that belong to nobody."""


class ChangeCountRow(SQLModel, table=True):
    """The number of changes of one scope."""

    __tablename__ = "change_count"

    scope: str = Field(primary_key=True)
    number: int = Field(sa_type=BigInteger)


_OF_PERSON = {"session": "owner", "job": "owner", "app": "session", "shutting": "session"}
"""Tables by the column with the user's name, or with the user's session."""
_OF_SITE = ("site_rule", "announcement")
_COLUMNS = {
    ("login", "revoked"): "user",
    ("cluster", "failing_since"): SITE,
    ("cluster", "message"): SITE,
    ("cluster", "partitions"): SITE,
    ("cluster", "limits"): LIMITS,
    ("cluster", "use"): USE,
}
"""In tables with columns that change at all times: the others, with their scope, or with the column
that has the user's name."""
_ROWS = {"insert": "NEW", "update": "NEW", "delete": "OLD"}
_NOT_SHOWN = {"session": ("usage_at", "cpu_seconds")}
"""Columns that each heartbeat changes and that pages do not show, by table."""


def install_triggers(connection: Connection) -> None:
    """Create the triggers that are missing: a migration drops those of tables that it replaces."""
    if connection.dialect.name == "sqlite":
        statements = list(_sqlite())
    else:
        present: dict[str, str] = dict(connection.exec_driver_sql(_PRESENT).all())
        statements = list(_postgresql(present))
    for statement in statements:
        connection.exec_driver_sql(statement)


@event.listens_for(SQLModel.metadata, "after_create")
def _install(_metadata: MetaData, connection: Connection, **_options: Any) -> None:
    install_triggers(connection)


def count_statement(scopes: str) -> str:
    """The statement that counts a change of each of these scopes (rows of scope and 1)."""
    raised = "ON CONFLICT (scope) DO UPDATE SET number = change_count.number + 1"
    return f"INSERT INTO change_count (scope, number) {scopes} {raised}"


def _scope_of_row(column: str, row: str) -> str:
    """The scope of one changed row."""
    if column in OF_ALL:
        return f"VALUES ('{column}', 1)"
    if column == "session":
        return f"SELECT '{PERSON}' || owner, 1 FROM session WHERE id = {row}.session"  # noqa: S608 - our words
    return f"VALUES ('{PERSON}' || {row}.\"{column}\", 1)"


def _scopes_of_rows(column: str) -> str:
    """The scopes of all rows that a statement has changed (PostgreSQL)."""
    if column == SITE:
        return f"VALUES ('{SITE}', 1)"
    rows = "changed_rows"
    if column == "session":
        rows = "session WHERE id IN (SELECT session FROM changed_rows)"
    return f"SELECT DISTINCT '{PERSON}' || owner, 1 FROM {rows} ORDER BY 1"  # noqa: S608 - our words


def _scopes_of_shown(table: str, column: str) -> str:
    """The scopes of the updated rows of which pages show a change (PostgreSQL)."""
    shown = _shown(table)
    rows = f"(SELECT {shown} FROM changed_rows EXCEPT SELECT {shown} FROM rows_before) AS shown"  # noqa: S608 - our words
    return f"SELECT DISTINCT '{PERSON}' || {column}, 1 FROM {rows} ORDER BY 1"  # noqa: S608 - our words


def _shown(table: str) -> str:
    """The columns of which pages show changes."""
    columns = SQLModel.metadata.tables[table].columns.keys()
    return ", ".join(f'"{name}"' for name in columns if name not in _NOT_SHOWN.get(table, ()))


def _tables() -> Iterator[tuple[str, str]]:
    yield from _OF_PERSON.items()
    yield from ((table, SITE) for table in _OF_SITE)


def _sqlite() -> Iterator[str]:
    for table, column in _tables():
        for kind, row in _ROWS.items():
            on = f"update OF {_shown(table)}" if kind == "update" else kind
            yield from _sqlite_trigger(
                f"{table}_{kind}", f'{on} ON "{table}"', _scope_of_row(column, row)
            )
    for (table, changed), column in _COLUMNS.items():
        when = f'update OF {changed} ON "{table}" WHEN OLD.{changed} IS NOT NEW.{changed}'
        yield from _sqlite_trigger(f"{table}_{changed}", when, _scope_of_row(column, "NEW"))


def _sqlite_trigger(name: str, when: str, scopes: str) -> Iterator[str]:
    yield f"DROP TRIGGER IF EXISTS count_{name}"
    yield f"CREATE TRIGGER count_{name} AFTER {when} BEGIN {count_statement(scopes)}; END"


_PRESENT = """
    SELECT tgname, relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
    WHERE tgname LIKE 'count\\_%%' AND relnamespace = current_schema()::regnamespace
"""


def _postgresql(present: dict[str, str]) -> Iterator[str]:
    """Replace the functions, and the triggers that differ from the present ones (name: table).

    `slipway init` runs at each start of a host, while others serve pages: to drop a trigger waits
    for all who read its table. So a trigger's name has a hash of its definition.
    """
    triggers: dict[str, str] = {}
    for table, column in _tables():
        yield _function(table, _scopes_of_rows(column))
        for kind, row in _ROWS.items():
            rows, function = f"{row} TABLE AS changed_rows", table
            if kind == "update" and table in _NOT_SHOWN:
                rows, function = f"{rows} OLD TABLE AS rows_before", f"{table}_update"
                yield _function(function, _scopes_of_shown(table, column))
            when = f'{kind} ON "{table}" REFERENCING {rows} FOR EACH STATEMENT'
            triggers |= _postgresql_trigger(f"{table}_{kind}", when, function)
    for (table, changed), column in _COLUMNS.items():
        name = f"{table}_{changed}"
        yield _function(name, _scope_of_row(column, "NEW"))
        different = f"OLD.{changed} IS DISTINCT FROM NEW.{changed}"
        when = f'update ON "{table}" FOR EACH ROW WHEN ({different})'
        triggers |= _postgresql_trigger(name, when, name)
    yield from (
        f'DROP TRIGGER {name} ON "{table}"'
        for name, table in present.items()
        if name not in triggers
    )
    yield from (text for name, text in triggers.items() if name not in present)


def _postgresql_trigger(name: str, when: str, function: str) -> dict[str, str]:
    definition = f"AFTER {when} EXECUTE FUNCTION count_{function}()"
    full_name = f"count_{name}_{hashlib.sha256(definition.encode()).hexdigest()[:8]}"
    return {full_name: f"CREATE TRIGGER {full_name} {definition}"}


def _function(name: str, scopes: str) -> str:
    return (
        f"CREATE OR REPLACE FUNCTION count_{name}() RETURNS trigger LANGUAGE plpgsql "
        f"AS $$ BEGIN {count_statement(scopes)}; RETURN NULL; END $$"
    )
