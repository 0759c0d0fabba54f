"""`slipway web`: the web application, by gunicorn."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from portal.adapters.web_processes import SOCKET
from portal.cli.render import programs
from portal.config import Settings
from portal.config.web import RUNNERS_SOCKET


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser("web", help="run the web application until stopped")
    parser.set_defaults(action=_web)


def gunicorn_arguments(settings: Settings) -> list[str]:
    """The arguments of gunicorn."""
    web, run = settings.web, Path(settings.state.run)
    return [
        # The portal's socket is there last: other programs wait for it.
        "--bind", f"unix:{run / RUNNERS_SOCKET}", "--bind", f"unix:{run / SOCKET}",
        "--umask", "0o177", "--worker-class", "portal.web.gunicorn_worker.PortalWorker",
        "--workers", str(web.processes), "--threads", str(web.threads),
        # HAProxy has stricter limits, and better answers.
        "--limit-request-line", "8190", "--limit-request-fields", "200",
        "--limit-request-field_size", "32000",
        "--worker-tmp-dir", "/dev/shm",  # noqa: S108 - made by gunicorn with a random name
        "--no-control-socket", "--logger-class", "portal.logs.gunicorn.PortalLogger",
        "portal.wsgi:app",
    ]  # fmt: skip


def _web(settings: Settings, _options: argparse.Namespace) -> int:
    program = programs() / "gunicorn"
    # The process stays the same, for systemd and supervisord.
    os.execv(program, [str(program), *gunicorn_arguments(settings)])
