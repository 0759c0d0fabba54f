"""`slipway images`: environments from recipe to removal."""

from __future__ import annotations

import argparse

from portal.cli.images import build, keep


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its own commands."""
    parser = commands.add_parser("images", help="build, test, list and retire images")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    build.add_parsers(actions)
    keep.add_parsers(actions)
