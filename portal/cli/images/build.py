"""`slipway images build`, `test` and `show`, which need no database."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from portal.cli.images.shown import shown_inventory, size
from portal.config import Settings
from portal.core.images.names import ImageError, ImageName, parse_name
from portal.core.images.recipe import Sources, described, read_arguments
from portal.services.images.builder import COMPRESSION, Order
from portal.wiring import ImageFactory, image_factory

NAME = "ENVIRONMENT/VERSION, such as python/3.13"
Action = Callable[[ImageFactory, argparse.Namespace], int]


def add_parsers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    build = actions.add_parser(
        "build",
        help="build an image from a recipe, a definition or an address",
        description="Build an image and make it the current one. Jobs that run keep the old one, "
        "and a build that fails changes nothing.",
    )
    _add_places(build)
    _add_sources(build)
    _add_ways(build)
    build.set_defaults(action=_with_errors(_build))
    test = actions.add_parser("test", help="run a recipe's test in its image, as in a session")
    _add_places(test)
    test.set_defaults(action=_with_errors(_test))
    show = actions.add_parser("show", help="show what is inside an image")
    _add_places(show)
    show.add_argument("--packages", action="store_true", help="list all packages")
    show.add_argument("--json", action="store_true", help="print the inventory as JSON")
    show.set_defaults(action=_with_errors(_show))


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="ENVIRONMENT/VERSION", help=NAME)
    parser.add_argument(
        "--images", type=Path, help="the site's folder of images (default: sessions.images)"
    )
    parser.add_argument(
        "--recipes", type=Path, default=Path("images"), help="folder of recipes (default: images)"
    )
    parser.set_defaults(settings_optional=True)


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="address", default="", metavar="ADDRESS",
        help="build from docker://…, oci://… or library://…, without a definition",
    )  # fmt: skip
    parser.add_argument(
        "--definition", type=Path, help="build from this definition instead of a recipe's"
    )
    parser.add_argument("--base", default="", help="take the base system from this address")
    parser.add_argument(
        "--build-arg", action="append", default=[], metavar="NAME=VALUE",
        help="set {{ NAME }} in the definition; may be repeated",
    )  # fmt: skip
    parser.add_argument("--title", default="", help="title of an image without a recipe")
    parser.add_argument("--description", default="", help="its description")


def _add_ways(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fakeroot", action=argparse.BooleanOptionalAction, default=None,
        help="build as root of a user namespace (default: where that is needed and possible)",
    )  # fmt: skip
    parser.add_argument(
        "--if-changed", action="store_true", help="keep an image that has the same sources"
    )
    parser.add_argument(
        "--compression", default=os.environ.get("SLIPWAY_COMPRESSION", COMPRESSION),
        help="options of mksquashfs",
    )  # fmt: skip
    parser.add_argument("--on-cluster", action="store_true", help="build in a job of Slurm's")
    parser.add_argument(
        "--srun", action="append", default=[], metavar="OPTION",
        help="an option of srun's for --on-cluster, such as --srun=--mem=8G; may be repeated",
    )  # fmt: skip


def _with_errors(action: Action) -> Callable[[Settings, argparse.Namespace], int]:
    """Wrap a command: errors are printed, and the exit status is 1."""

    def run(settings: Settings, options: argparse.Namespace) -> int:
        os.umask(0o022)  # images are readable by all users
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _interrupt)
        images = options.images or Path(settings.sessions.images)
        try:
            return action(image_factory(images.absolute(), options.recipes, _note), options)
        except ImageError as error:
            print(f"slipway: {error}", file=sys.stderr)
            return 1
        except OSError as error:
            print(f"slipway: {error.filename}: {error.strerror}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("slipway: interrupted; the image is as it was", file=sys.stderr)
            return 130

    return run


def _interrupt(_number: int, _frame: object) -> None:
    """End like Ctrl-C, so that a build ended by Slurm or a closed terminal is cleaned up."""
    raise KeyboardInterrupt


def _note(text: str) -> None:
    print(text, flush=True)


def _build(factory: ImageFactory, options: argparse.Namespace) -> int:
    name = parse_name(options.name)
    order = _order(factory, name, options)
    if options.on_cluster:
        return factory.run_on_cluster(f"build-{name}", options.srun, _arguments_on_node())
    inventory = factory.builder.build(order)
    _note(f"{name}: {size(inventory.size)}, {inventory.file}")
    return 0


def _arguments_on_node() -> list[str]:
    """This command's arguments, for the node."""
    words = iter(sys.argv[1:])
    arguments = []
    for word in words:
        if word == "--srun":
            next(words, None)
        elif word != "--on-cluster" and not word.startswith("--srun="):
            arguments.append(word)
    return arguments


def _order(factory: ImageFactory, name: ImageName, options: argparse.Namespace) -> Order:
    recipe = factory.recipes.folder(name)
    arguments = read_arguments(options.build_arg)
    if options.address and options.definition:
        raise ImageError("--from and --definition exclude each other")
    if options.address:
        if arguments:
            raise ImageError("--build-arg needs a definition")
        sources, folder = Sources(name=name, address=options.address), Path.cwd()
    elif options.definition is not None:
        sources = Sources(name=name, definition=_read(options.definition), arguments=arguments)
        folder = options.definition.absolute().parent
    elif recipe is not None:
        read = factory.recipes.read(recipe)
        sources = Sources(
            name=name, definition=read.definition, suite=read.suite, files=read.files,
            arguments=arguments, base=options.base,
        )  # fmt: skip
        folder = recipe
    else:
        raise ImageError(
            f"there is no recipe {options.recipes / str(name)}/image.def; write one, or use "
            "--definition FILE or --from docker://…"
        )
    return Order(
        sources=sources,
        description=_description(sources, options),
        folder=folder,
        fakeroot=options.fakeroot,
        if_changed=options.if_changed,
        compression=options.compression,
    )


def _description(sources: Sources, options: argparse.Namespace) -> str:
    """The text of image.toml: the recipe's, or one with the title."""
    if "image.toml" in sources.files:
        return sources.files["image.toml"].decode("utf-8", "replace")
    title = options.title or f"{sources.name.environment.capitalize()} {sources.name.version}"
    return described(title, options.description)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ImageError(f"--definition {file}: {getattr(error, 'strerror', error)}") from error


def _test(factory: ImageFactory, options: argparse.Namespace) -> int:
    name = parse_name(options.name)
    factory.builder.test(name, factory.recipes.folder(name))
    return 0


def _show(factory: ImageFactory, options: argparse.Namespace) -> int:
    image = factory.store.get(parse_name(options.name))
    if options.json:
        if image.inventory is None:
            raise ImageError(f"{image.name} has no inventory: build it again")
        print(image.inventory.model_dump_json(indent=1))
        return 0
    for line in shown_inventory(image, options.packages):
        print(line)
    if image.inventory is None:
        for key, value in sorted(factory.labels(factory.store.file(image.name)).items()):
            print(f"label      {key}={value}")
    return 0
