"""`slipway images list`, `retire` and `prune`, which read the use of images in the database."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable

from portal.cli.images.shown import shown_list, shown_removals
from portal.config import Settings
from portal.core.images.names import ImageError, parse_name
from portal.services.images.keeper import ImageKeeper
from portal.wiring import image_keeper

Action = Callable[[ImageKeeper, argparse.Namespace], None]


def add_parsers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    listing = actions.add_parser("list", help="list all images with their size and their use")
    listing.set_defaults(action=_with_errors(_list))
    retire = actions.add_parser(
        "retire", help="hide a version from launches; sessions that have it keep it"
    )
    retire.add_argument("name", metavar="ENVIRONMENT/VERSION", help="such as python/3.11")
    retire.add_argument("--undo", action="store_true", help="offer it again")
    retire.set_defaults(action=_with_errors(_retire))
    prune = actions.add_parser(
        "prune", help="delete retired images and replaced files that nobody uses"
    )
    prune.add_argument(
        "names", nargs="*", metavar="ENVIRONMENT/VERSION", help="only these (default: all)"
    )
    prune.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
    prune.set_defaults(action=_with_errors(_prune))


def _with_errors(action: Action) -> Callable[[Settings, argparse.Namespace], int]:
    def run(settings: Settings, options: argparse.Namespace) -> int:
        os.umask(0o022)  # the portal and the nodes read the folder of images
        try:
            action(image_keeper(settings), options)
        except ImageError as error:
            print(f"slipway: {error}", file=sys.stderr)
            return 1
        except OSError as error:
            print(f"slipway: {error.filename}: {error.strerror}", file=sys.stderr)
            return 1
        return 0

    return run


def _list(keeper: ImageKeeper, _options: argparse.Namespace) -> None:
    for line in shown_list(keeper.listed()):
        print(line)


def _retire(keeper: ImageKeeper, options: argparse.Namespace) -> None:
    name = parse_name(options.name)
    if options.undo:
        keeper.restore(name)
        print(f"{name} is offered again")
        return
    users = Counter(session.owner for session in keeper.retire(name))
    print(f"{name} is retired: it cannot be launched any more")
    for owner, count in sorted(users.items()):
        print(f"still used by {owner}: {count} session{'' if count == 1 else 's'}")
    if users:
        print("their sessions go on; `slipway images prune` deletes it when they have ended")


def _prune(keeper: ImageKeeper, options: argparse.Namespace) -> None:
    names = [parse_name(text) for text in options.names]
    for line in shown_removals(keeper.prune(options.dry_run, names), options.dry_run):
        print(line)
