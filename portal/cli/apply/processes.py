"""Control of the portal's processes by systemd, supervisord or by hand."""

from __future__ import annotations

import http.client
import os
import shlex
import socket
import time
from collections.abc import Callable
from pathlib import Path

from portal.adapters.web_processes import SOCKET, Gunicorn, identity
from portal.cli.apply.account import CommandResult, run, run_as_owner, slipway
from portal.cli.apply.stand_in import StandIn
from portal.config import Settings
from portal.errors import Unavailable

WEB_SECONDS = 90.0
"""Time limit for new gunicorn workers to answer."""
_START_SECONDS = 2.0
"""Seconds after which a worker that cannot start has ended."""

_NOT_RUNNING = 3
"""The exit status of systemctl and supervisorctl for that."""


class Processes:
    """The portal's processes; each action returns an error message, or ""."""

    def __init__(
        self, settings: Settings, file: Path, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._settings, self._file, self._wait = settings, file, wait
        self._kind = settings.service.supervisor
        self._control = shlex.split(settings.service.supervisorctl)

    def problem(self) -> str:
        """Why this account cannot control the processes; "" if it can."""
        if self._kind == "systemd":
            if os.geteuid() != 0:
                return "systemd obeys root: run `slipway apply` as root"
            result = run(["systemctl", "show", "--property=Version"])
            if result.status:
                return f"systemd does not answer ({result.output}); see service.supervisor"
        if self._kind == "supervisord":
            result = run([*self._control, "status", "web", "worker"])
            if result.status not in (0, 3):  # 3: one of them does not run
                return f"supervisord: {result.output}; see service.supervisorctl"
        return ""

    def stopped(self) -> frozenset[str]:
        """Names of processes that are known not to run: "proxy", "web", "worker"."""
        if self._kind == "none":
            return frozenset()
        # The name of HAProxy's program in supervisord is chosen by the site.
        names = ("proxy", "web", "worker") if self._kind == "systemd" else ("web", "worker")
        state = "is-active" if self._kind == "systemd" else "status"
        statuses = {name: run(self._command(state, name)).status for name in names}
        return frozenset(name for name, status in statuses.items() if status == _NOT_RUNNING)

    def running(self) -> dict[str, str]:
        """PID and start time of the web and worker processes, if known."""
        if self._kind == "none":
            return {}
        return {name: self._identity(name) for name in ("web", "worker")}

    def _identity(self, name: str) -> str:
        command = self._command("pid", name)
        if self._kind == "systemd":
            command = ["systemctl", "show", "--property=MainPID", "--value", f"slipway-{name}"]
        pid = run(command).output
        return identity(int(pid)) if pid.isdecimal() else ""

    def _command(self, action: str, name: str) -> list[str]:
        """The systemctl or supervisorctl command for a process of the portal."""
        if self._kind == "systemd":
            return ["systemctl", action, f"slipway-{name}"]
        return [*self._control, action, name]

    def reread_units(self) -> str:
        """Have systemd read its units again."""
        return _failed(run(["systemctl", "daemon-reload"]))

    def reload_proxy(self) -> str:
        """Start a HAProxy process with the current configuration; the old one keeps its streams."""
        if self._kind == "systemd":
            return _failed(run(["systemctl", "reload-or-restart", "slipway-proxy"]))
        words = slipway(self._file, "reload-proxy")
        return _failed(run_as_owner(self._settings, words))

    def renew_web(self, restart: bool) -> str:
        """Replace gunicorn's workers one by one; with `restart`, restart gunicorn."""
        if not restart and self._is_listening():
            words = slipway(self._file, "reload-web")
            return _failed(run_as_owner(self._settings, words)) or self._await_web()
        return _failed(run(self._command("restart", "web"))) or self._await_web()

    def _is_listening(self) -> bool:
        try:
            Gunicorn(Path(self._settings.state.run)).first()
        except Unavailable:
            return False
        return True

    def restart_worker(self) -> str:
        """Restart the worker; apps stay open meanwhile."""
        with StandIn(self._settings, self._file, self._wait):
            return self._restart_worker()

    def _restart_worker(self) -> str:
        if problem := _failed(run(self._command("restart", "worker"))):
            return problem
        self._wait(_START_SECONDS)
        state = "is-active" if self._kind == "systemd" else "status"
        return _failed(run(self._command(state, "worker")))

    def _await_web(self) -> str:
        """Wait until new processes answer."""
        socket_file = Path(self._settings.state.run) / SOCKET
        deadline = time.monotonic() + WEB_SECONDS
        problem = ""
        while time.monotonic() < deadline:
            try:
                status = _ask(socket_file, self._settings.web.host)
            except (OSError, http.client.HTTPException) as error:
                problem = str(error)
            else:
                return "" if status == 200 else f"/healthz answers {status}"
            self._wait(0.3)
        return f"the web application does not answer at {socket_file}: {problem}"


def _ask(socket_file: Path, host: str) -> int:
    """The HTTP status of the health check, requested without HAProxy."""
    connection = http.client.HTTPConnection(host, timeout=WEB_SECONDS)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.sock.settimeout(WEB_SECONDS)
        connection.sock.connect(str(socket_file))
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    finally:
        connection.close()


def _failed(result: CommandResult) -> str:
    if result.status == 0:
        return ""
    return result.output or f"exit status {result.status}"


BY_HAND = """\
service.supervisor is "none": nothing was restarted. Now run, as the portal's account,

    slipway reload-proxy
    slipway reload-web

and restart `slipway worker`."""
