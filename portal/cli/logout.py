"""`slipway logout`: ends logins and API tokens, as after a theft."""

from __future__ import annotations

import argparse
import getpass
import sys

from portal.config import Settings
from portal.errors import PortalError
from portal.wiring import wire


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "logout", help="end logins and API tokens; sessions go on (services: token revoke)"
    )
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("users", nargs="*", default=[], metavar="USER")
    group.add_argument("--everybody", action="store_true")
    parser.set_defaults(action=_logout)


def _logout(settings: Settings, options: argparse.Namespace) -> int:
    logins = wire(settings).logins
    try:
        users = options.users or [entry.user for entry in logins.active_users()]
        ended = sum(
            logins.revoke_all(user, getpass.getuser(), why="slipway logout") for user in users
        )
    except PortalError as error:
        print(f"slipway: {error.text}", file=sys.stderr)
        return 1
    print(f"ended {ended} logins and tokens of {len(users)} users")
    return 0
