"""The administrators' command `slipway`."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import secrets
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from urllib.parse import urlsplit

from portal.adapters.backup.database import keep_copy
from portal.adapters.backup.state import BACKUPS, in_use
from portal.adapters.certificates import prepare_authorities
from portal.adapters.haproxy.map_files import MAPS
from portal.cli.apply.checks import local_findings
from portal.cli.apply.command import add_parser as add_apply
from portal.cli.check import check, check_gpus
from portal.cli.checks.try_sessions import try_sessions
from portal.cli.findings import Finding
from portal.cli.images import add_parser as add_images
from portal.cli.logout import add_parser as add_logout
from portal.cli.maintenance import add_parser as add_maintenance
from portal.cli.render import render
from portal.cli.state.backup import add_parser as add_backup
from portal.cli.state.move import add_parser as add_move
from portal.cli.state.restore import add_parser as add_restore
from portal.cli.state.rotate import add_parser as add_rotate
from portal.cli.token import add_parser as add_token
from portal.cli.web import add_parser as add_web
from portal.cli.worker import add_parser as add_worker
from portal.config import LogSettings, Settings, SettingsError, load_settings, settings_file
from portal.config.annotate import annotated
from portal.errors import PortalError
from portal.logs.setup import configure
from portal.store.encryption import Sealer, make_key, read_keys
from portal.store.engine import check_schema, open_database, upgrade
from portal.store.reencrypt import seal_all
from portal.store.urls import check_url
from portal.version import described
from portal.wiring import now, wire

Command = Callable[[Settings, argparse.Namespace], int]


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(argv)
    os.umask(0o077)  # keys and the database are private
    configure(LogSettings())
    if options.action is None:
        print(annotated(), end="")
        return 0
    try:
        action: Command = options.action
        settings = _settings(options)
        configure(settings.log)
        return action(settings, options)
    except SettingsError as error:
        print(f"slipway: {error}", file=sys.stderr)
        return 2
    except PortalError as error:
        print(f"slipway: {error.text}", file=sys.stderr)
        return 1


def _settings(options: argparse.Namespace) -> Settings:
    """Load the settings; without a file, defaults for commands that do not need one."""
    if getattr(options, "settings_optional", False) and options.config is None:
        with contextlib.suppress(SettingsError):
            return load_settings()
        return Settings()
    return load_settings(options.config)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slipway", description=__doc__)
    parser.add_argument("--version", action="version", version=f"slipway {described()}")
    parser.add_argument("--config", help="settings file (default: /etc/slipway/slipway.toml)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("config", None, "print a settings file with every key, its description and its default"),
        ("init", _init, "create keys, certificates and the database; what exists is kept"),
        ("rotate-keys", _rotate, "create a new key for values of variables, and re-encrypt them"),
        ("apps", _apps, "list the apps, and the images that can run each"),
    ):
        commands.add_parser(name, help=text).set_defaults(action=command)
    add_web(commands)
    add_worker(commands)
    add_token(commands)
    add_images(commands)
    add_logout(commands)
    add_maintenance(commands)
    add_backup(commands)
    add_restore(commands)
    add_rotate(commands)
    add_apply(commands)
    add_move(commands)
    check_parser = commands.add_parser(
        "check", help="report what is missing before the portal can work; for GPUs: check gpu"
    )
    check_parser.add_argument("what", nargs="?", choices=["gpu"])
    check_parser.add_argument(
        "--session",
        nargs="?",
        const="",
        metavar="USER",
        help="try the whole way of a session on the nodes, by a job of a minute in each partition, "
        "as USER (default: the first of slurm.admins)",
    )
    check_parser.add_argument(
        "--local",
        action="store_true",
        help="only what needs no network, as `slipway apply` checks it",
    )
    check_parser.set_defaults(action=_check)
    render_parser = commands.add_parser("render", help="print or write configuration for this site")
    render_parser.add_argument("what", choices=["haproxy", "systemd", "gpu", "batch"])
    render_parser.add_argument(
        "--output", type=Path, help="file to write (for systemd: folder); otherwise it is printed"
    )
    render_parser.set_defaults(action=_render)
    return parser


def _init(settings: Settings, _options: argparse.Namespace) -> int:
    state, run = Path(settings.state.directory), Path(settings.state.run)
    if problem := _make_folders(state, run):
        print(f"slipway: {problem}", file=sys.stderr)
        return 1
    check_url(settings.state.database_url)
    check_schema(settings.state.database_url)
    with in_use(settings.state):
        _prepare(settings, state, run)
    print(f"ready: {state}")
    return 0


def _prepare(settings: Settings, state: Path, run: Path) -> None:
    key = state / "secret_key"
    if not key.exists():
        draft = key.with_suffix(".new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        draft.rename(key)
    host = urlsplit(settings.sessions.callback).hostname or "localhost"
    server = settings.state.ca_file("server.pem")
    before = server.read_bytes() if server.exists() else None
    prepare_authorities(settings.state.ca_file(""), host)
    if before not in (None, server.read_bytes()):
        print(f"renewed {server} for {host}; now reload slipway-proxy")
    copy = keep_copy(settings.state.database_url, state / BACKUPS, now())
    if copy is not None:
        logging.getLogger(__name__).info(
            "before its migration, the database was copied to %s", copy
        )
    upgrade(settings.state.database_url)
    if not read_keys(settings.state.keys):
        make_key(settings.state.keys)
    _seal(settings)
    for name in MAPS:
        (run / name).touch()  # HAProxy needs the files to exist; routes are added at run time


def _make_folders(*folders: Path) -> str:
    """Create missing folders; returns a problem with its remedy, or ""."""
    for folder in folders:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            user = os.getuid()
            return (
                f"{folder}: {error.strerror}. As root: install -d -m 700 -o {user} {folder} "
                "(systemd does so for slipway-web); then run `slipway init` again"
            )
        if not os.access(folder, os.W_OK | os.X_OK):
            return f"{folder} cannot be written by UID {os.getuid()}; run this as its owner"
    return ""


def _seal(settings: Settings) -> None:
    engine = open_database(settings.state.database_url)
    changed, lost = seal_all(engine, Sealer(settings.state.keys))
    engine.dispose()
    if changed:
        print(f"encrypted {changed} rows of the database with the newest key")
    if lost:
        print(
            f"slipway: the key of {lost} rows is missing in {settings.state.keys}", file=sys.stderr
        )


def _rotate(settings: Settings, _options: argparse.Namespace) -> int:
    number = make_key(settings.state.keys)
    print(f"created key {number} in {settings.state.keys}; older keys are kept")
    _seal(settings)
    return 0


def _render(settings: Settings, options: argparse.Namespace) -> int:
    try:
        render(settings, options.what, options.output)
    except OSError as error:
        print(f"slipway: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _check(settings: Settings, options: argparse.Namespace) -> int:
    problems = 0
    findings: Generator[Finding, None, None]
    if options.local:
        findings = local_findings(settings, settings_file(options.config))
    elif options.what == "gpu":
        findings = check_gpus(settings)
    elif options.session is not None:
        findings = try_sessions(settings, options.session)
    else:
        findings = check(settings, settings_file(options.config))
    try:
        with contextlib.closing(findings):
            for finding in findings:
                print(f"{finding.word:<7} {finding.text}", flush=True)
                problems += not finding.ok
    except BrokenPipeError:  # such as `slipway check | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for Python's own flush at the end
        return 1
    except KeyboardInterrupt:
        print("slipway: interrupted; its jobs are cancelled", file=sys.stderr)
        return 130
    return 1 if problems else 0


def _apps(settings: Settings, _options: argparse.Namespace) -> int:
    catalog = wire(settings).catalog()
    images_of: dict[str, list[str]] = {name: [] for name in catalog.apps}
    for image in catalog.images:
        for spec in catalog.apps_of(image.environment, image.version):
            images_of[spec.name].append(f"{image.environment}/{image.version}")
    for name, images in images_of.items():
        print(f"{name:<16} {catalog.apps[name].title:<24} {', '.join(images) or '-'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
