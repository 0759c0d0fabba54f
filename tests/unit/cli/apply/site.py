"""A portal's host for `slipway apply`: a real HAProxy; supervisorctl notes its arguments."""

from __future__ import annotations

import io
import json
import socketserver
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from portal.adapters.haproxy.runtime_api import Haproxy
from portal.cli.apply.account import CommandResult
from portal.cli.main import main
from portal.config import Settings
from tests.support.paths import ROOT

CONTROL = """\
#!/bin/sh
echo "$*" >> {notes}
case "$1 ${{2:-}}" in {fails}) echo "no such process"; exit 1 ;; esac
"""


class Health(BaseHTTPRequestHandler):
    """Stands in for gunicorn."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def address_string(self) -> str:
        return "-"

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Web(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@dataclass
class Site:
    """A portal's host: settings, a real HAProxy, and supervisord's command."""

    folder: Path
    port: int

    @property
    def config(self) -> Path:
        """The settings file."""
        return self.folder / "slipway.toml"

    @property
    def haproxy(self) -> Path:
        """HAProxy's configuration."""
        return self.folder / "haproxy.cfg"

    def set(self, supervisor: str = "supervisord", **web: object) -> None:
        """Write the settings."""
        first = self.port
        keys = {
            "public_url": f"http://localhost:{first}",
            "listen": f"127.0.0.1:{first}",
            "listen_runners": f"127.0.0.1:{first + 1}",
            "apps_ports": [first + 2, first + 3],
            "ssh_ports": [first + 4, first + 5],
        }
        lines = ["[web]", *(f"{key} = {json.dumps(it)}" for key, it in (keys | web).items())]
        place = {name: json.dumps(str(self.folder / name)) for name in ("state", "run", "ctl")}
        lines += [
            f"[state]\ndirectory = {place['state']}\nrun = {place['run']}",
            f"[sessions]\ntemplates = {json.dumps(str(ROOT / 'templates'))}",
            f"[service]\nsupervisor = '{supervisor}'\nsupervisorctl = {place['ctl']}",
            f"haproxy_config = {json.dumps(str(self.haproxy))}",
            f"units = {json.dumps(str(self.folder / 'units'))}",
        ]
        self.config.write_text("\n".join(lines) + "\n")

    def control(self, fails: str = "nothing") -> None:
        """Have supervisorctl fail for these words."""
        file = self.folder / "ctl"
        file.write_text(CONTROL.format(notes=self.folder / "notes", fails=fails))
        file.chmod(0o755)

    def apply(self, *options: str) -> int:
        """Run the command."""
        return main(["--config", str(self.config), "apply", *options])

    def asked(self) -> list[str]:
        """What supervisorctl was asked to change, once."""
        notes = self.folder / "notes"
        lines = notes.read_text().splitlines() if notes.exists() else []
        notes.unlink(missing_ok=True)
        return [line for line in lines if not line.startswith(("status", "pid"))]

    def run(self) -> None:
        """Note that gunicorn's workers are to be replaced."""
        with (self.folder / "notes").open("a") as notes:
            notes.write("reload-web\n")

    def process(self) -> str:
        """The newest process of HAProxy's."""
        return Haproxy(str(self.folder / "run")).newest().prefix


def in_process(
    _: Settings, argv: Sequence[str], env: Mapping[str, str] | None = None
) -> CommandResult:
    """Run a command of `slipway` here, which is quicker; the application is not tried."""
    if env is not None:
        return CommandResult(0, "")
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        status = main([*argv[3:]])
    return CommandResult(status, said.getvalue().strip())
