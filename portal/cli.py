"""The command `slipway`: what administrators type."""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from portal.adapters.certificates import prepare_authorities
from portal.adapters.migrate import upgrade
from portal.check import check
from portal.config import Settings, SettingsError, load_settings
from portal.wiring import wire
from portal.worker import Worker, only_one

Command = Callable[[Settings, argparse.Namespace], int]


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit status is 0 when all is well."""
    parser = argparse.ArgumentParser(prog="slipway", description=__doc__)
    parser.add_argument("--config", help="settings file (default: /etc/slipway/slipway.toml)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("init", _init, "make keys, certificates and the database; what is there stays"),
        ("worker", _worker, "follow Slurm's queue until told to stop"),
        ("check", _check, "say what is missing before the portal can work"),
    ):
        commands.add_parser(name, help=text).set_defaults(action=command)
    render = commands.add_parser("render", help="print a configuration file for this site")
    render.add_argument("what", choices=["haproxy", "systemd"])
    render.set_defaults(action=_render)
    options = parser.parse_args(argv)
    os.umask(0o077)  # keys and the database are nobody else's
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("paramiko").setLevel(logging.WARNING)
    try:
        action: Command = options.action
        return action(load_settings(options.config), options)
    except SettingsError as error:
        print(f"slipway: {error}", file=sys.stderr)
        return 2


def _init(settings: Settings, _options: argparse.Namespace) -> int:
    state = Path(settings.state.directory)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = state / "secret_key"
    if not key.exists():
        draft = key.with_suffix(".new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        draft.rename(key)
    host = urlsplit(settings.sessions.callback).hostname or "localhost"
    prepare_authorities(settings.state.ca_file(""), host)
    upgrade(settings.state.database_url)
    run = Path(settings.state.run)
    run.mkdir(parents=True, exist_ok=True)
    for name in ("routes.map", "background.map"):
        (run / name).touch()  # HAProxy wants the file to exist; what is in it comes at run time
    print(f"ready: {state}")
    return 0


def _worker(settings: Settings, _options: argparse.Namespace) -> int:
    with only_one(settings.state.run):
        Worker(wire(settings)).run()
    return 0


def _render(settings: Settings, options: argparse.Namespace) -> int:
    folder = Path(settings.sessions.templates)
    template = {"haproxy": "haproxy/portal.cfg.j2", "systemd": "systemd/slipway.service.j2"}
    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701  # configuration files, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    values = {"settings": settings, "bin": Path(sys.executable).parent}
    print(environment.get_template(template[options.what]).render(values), end="")
    return 0


def _check(settings: Settings, _options: argparse.Namespace) -> int:
    problems = 0
    for finding in check(settings):
        print(("ok      " if finding.ok else "MISSING ") + finding.text)
        problems += not finding.ok
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
