"""Checks of the database's URL, with errors that an administrator can act on."""

from __future__ import annotations

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from portal.errors import PortalError

_FORM = "postgresql+psycopg://USER:PASSWORD@HOST/NAME"
_ALIASES = ("postgres", "postgresql+asyncpg", "pgsql")


class DatabaseUrlError(PortalError):
    """state.database is invalid; the text never contains it, as it may have a password."""


def check_url(url: str) -> None:
    """Raise DatabaseUrlError unless the URL has a known form and its driver is installed."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise DatabaseUrlError(f"state.database is not a database URL, such as {_FORM}") from None
    if parsed.drivername in _ALIASES:
        text = f"state.database: {parsed.drivername}:// is not known; write {_FORM}"
        raise DatabaseUrlError(text)
    try:
        parsed.get_dialect().import_dbapi()
    except NoSuchModuleError:
        text = f"state.database: {parsed.drivername}:// is not known; write {_FORM}"
        raise DatabaseUrlError(text) from None
    except ImportError as error:
        missing = error.name or "its driver"
        advice = f'write {_FORM}, and pip install "psycopg[binary]"'
        if parsed.get_backend_name() != "postgresql":
            advice = "PostgreSQL and SQLite are supported"
        text = f"state.database: the driver {missing} is not installed here; {advice}"
        raise DatabaseUrlError(text) from None
