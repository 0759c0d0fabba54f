"""`slipway move-database`: the portal's data into another database."""

from __future__ import annotations

import argparse
import logging
import sys

from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from portal.adapters.backup import state
from portal.adapters.backup.database import CopyFailed, move_database, other_users
from portal.adapters.backup.state import InUse
from portal.cli.state.account import fail, wrong_account
from portal.config import Settings, StateSettings
from portal.errors import DatabaseUnavailable
from portal.store.urls import DatabaseUrlError, check_url


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "move-database",
        help="copy all data to another, empty database, while the portal is stopped",
    )
    parser.add_argument(
        "url",
        help="its SQLAlchemy URL, as for state.database; -: read it from standard input, so that "
        "a password in it is in no list of processes",
    )
    parser.set_defaults(action=_move)


def _move(settings: Settings, options: argparse.Namespace) -> int:
    logging.getLogger("alembic").setLevel(logging.WARNING)
    if problem := wrong_account(settings):
        return fail(problem)
    target = sys.stdin.readline().strip() if options.url == "-" else str(options.url)
    try:
        counts = _copy(settings.state, target)
    except DatabaseUrlError as error:
        return fail(error.text.replace("state.database", "the URL"))
    except InUse as error:
        stop = "stop the portal on all hosts first (systemctl stop slipway-web slipway-worker)"
        return fail(f"{error}: {stop}")
    except CopyFailed as error:
        return fail(f"{error}; nothing was moved")
    except (SQLAlchemyError, DatabaseUnavailable) as error:
        cause = getattr(error, "orig", None) or error.__cause__ or error
        lines = str(cause).strip().splitlines() or [""]
        return fail(f"{lines[0]}; nothing was moved")
    for name, count in sorted(counts.items()):
        if count:
            print(f"{count:>9}  {name}")
    shown = make_url(target).render_as_string(hide_password=True)
    print(f"copied and counted: {sum(counts.values())} rows, to {shown}")
    print("Next: write its URL as state.database into slipway.toml, on each host; slipway check;")
    print("then start the portal. The earlier database is unchanged.")
    return 0


def _copy(settings: StateSettings, target: str) -> dict[str, int]:
    """Copy all rows; returns the number of rows in each table.

    Raises DatabaseUrlError, InUse, CopyFailed, or the database's errors.
    """
    source = settings.database_url
    check_url(source)
    check_url(target)
    if make_url(target) == make_url(source):
        raise CopyFailed("that is the portal's database already")
    with state.alone(settings):
        for url in (source, target):
            if others := other_users(url):
                raise InUse(f"{others} others are connected to the database, on any host")
        return move_database(source, target)
