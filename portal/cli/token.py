"""`slipway token`: tokens of services that act for users."""

from __future__ import annotations

import argparse
import getpass
import sys

from portal.config import Settings
from portal.errors import InvalidRequest, PortalError
from portal.wiring import wire

DAYS = 365


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its own commands."""
    parser = commands.add_parser("token", help="tokens of services that act for users")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    create = actions.add_parser("create", help="create a token, and print it once")
    create.add_argument("name", help="what it is for, as in the journal: jupyterhub")
    create.add_argument("--users", type=_words, default=[], help="users it may act for: alice,bob")
    create.add_argument("--groups", type=_words, default=[], help="and members of these groups")
    create.add_argument("--days", type=int, default=DAYS, help=f"its lifetime (default: {DAYS})")
    create.set_defaults(action=_create)
    actions.add_parser("list", help="list all tokens").set_defaults(action=_list)
    revoke = actions.add_parser("revoke", help="revoke a token; sessions go on")
    revoke.add_argument("id", help="its id, as listed")
    revoke.set_defaults(action=_revoke)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _create(settings: Settings, options: argparse.Namespace) -> int:
    tokens = wire(settings).service_tokens
    try:
        secret, _ = tokens.make(
            getpass.getuser(), options.name, options.users, options.groups, options.days
        )
    except InvalidRequest as error:
        for problem in error.errors:
            print(f"slipway: {problem.field}: {problem.message}", file=sys.stderr)
        return 2
    print(secret)
    return 0


def _list(settings: Settings, _options: argparse.Namespace) -> int:
    print("ID                EXPIRES     LAST USED   NAME  USERS  GROUPS")
    for token in wire(settings).service_tokens.all():
        used = f"{token.used:%Y-%m-%d}" if token.used else "-         "
        principals = f"{','.join(token.users) or '-'}  {','.join(token.groups) or '-'}"
        print(f"{token.id}  {token.expires:%Y-%m-%d}  {used}  {token.name}  {principals}")
    return 0


def _revoke(settings: Settings, options: argparse.Namespace) -> int:
    try:
        wire(settings).service_tokens.revoke(getpass.getuser(), options.id)
    except PortalError as error:
        print(f"slipway: {error.text}", file=sys.stderr)
        return 1
    return 0
