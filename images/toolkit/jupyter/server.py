"""Jupyter's side of kernels that other users on the node cannot reach; config/ registers it.

Whatever other settings say, kernels of this server communicate over unix sockets. A Python kernel
is started through kernel.py, which does the rest. Any other kernel is watched by the server until
it first answers, and ended if it listens on TCP.

In JupyterHub's servers it is an extension as well, which tells the server's own windows the time
left; elsewhere the portal does, at the app's origin.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from pathlib import Path

from jupyter_server.base.handlers import APIHandler
from jupyter_server.services.kernels.kernelmanager import ServerKernelManager
from jupyter_server.utils import url_path_join
from tornado.web import HTTPError, authenticated

START = str(Path(__file__).with_name("kernel.py"))
LAUNCHERS = ("ipykernel_launcher", "ipykernel")
LISTEN = "0A"
WATCH_SECONDS = 20.0
PAUSE = 0.1
REASON = "it listens on TCP port %s, where everybody on this node could reach it"


class KernelManager(ServerKernelManager):
    """Starts a kernel without TCP ports, or not at all."""

    _guarded = False
    _watch: asyncio.Task[None] | None = None

    def format_kernel_cmd(self, extra_arguments=None):
        """The kernel's command, with kernel.py in place of ipykernel's launcher."""
        if self.transport != "ipc":
            raise RuntimeError("Slipway: kernels communicate over unix sockets only")
        command = super().format_kernel_cmd(extra_arguments)
        guarded = through_kernel_py(command)
        self._guarded = guarded != command
        return guarded

    def write_connection_file(self, **options):
        """Place the kernel's sockets in the server's own private folder, whatever is configured."""
        self.transport = "ipc"
        self.ip = os.path.splitext(self.connection_file)[0] + "-ipc"
        super().write_connection_file(**options)

    async def _async_post_start_kernel(self, **options):
        await super()._async_post_start_kernel(**options)
        if not self._guarded:
            self._watch = asyncio.ensure_future(self._watch_until_it_answers())

    async def _watch_until_it_answers(self):
        deadline = time.monotonic() + WATCH_SECONDS
        while time.monotonic() < deadline and self.provisioner is not None:
            ports = tcp_ports(getattr(self.provisioner, "pid", None))
            if ports:
                await self._refuse(ports)
                return
            # It has answered; from now on, its user decides what it does.
            if self.execution_state not in (None, "starting"):
                return
            await asyncio.sleep(PAUSE)

    async def _refuse(self, ports):
        self.reason = REASON % ", ".join(map(str, ports))
        self.log.error("Slipway: the kernel %s is ended: %s", self.kernel_name, self.reason)
        self.stop_restarter()
        await self._async_kill_kernel()
        self.execution_state = "dead"


def through_kernel_py(command: list[str]) -> list[str]:
    """The command with kernel.py in place of `-m ipykernel_launcher`; others unchanged."""
    if os.path.basename(command[0]).startswith("python"):
        # In the image's Python, which may be 3.7.
        for place, (word, module) in enumerate(zip(command, command[1:])):  # noqa: B905, RUF007
            if word == "-m" and module in LAUNCHERS:
                return [*command[:place], START, *command[place + 2 :]]
    return command


def tcp_ports(leader: int | None) -> list[int]:
    """The TCP ports that a kernel's processes listen on; `leader` is the first process."""
    mine = {inode for pid in _session_of(leader) for inode in _sockets_of(pid)}
    return sorted(port for inode, port in _listening().items() if inode in mine) if mine else []


def _session_of(leader: int | None) -> list[int]:
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # After the name, which may contain any character; the fourth field is the session.
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                found.append(int(name))
    return found


def _sockets_of(pid: int) -> list[str]:
    links = []
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                links.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return [link[8:-1] for link in links if link.startswith("socket:[")]


def _listening() -> dict[str, int]:
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN:
                    found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def _jupyter_server_extension_points():
    return [{"module": "slipway_jupyter"}]


def _load_jupyter_server_extension(server):
    path = url_path_join(server.web_app.settings["base_url"], ".slipway", "session")
    server.web_app.add_handlers(".*$", [(path, SessionHandler)])


class SessionHandler(APIHandler):
    """The session's name and end, as the runner has last heard of them from the portal.

    In the form that the portal has at the origins of its own apps.
    """

    @authenticated
    def get(self):
        """Answer 503 until the portal has said something."""
        try:
            told = json.loads(status_file().read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise HTTPError(503) from None
        self.finish(json.dumps(status(told, os.environ)))


def status_file() -> Path:
    """Where the runner keeps the portal's last answer."""
    return Path(os.environ["SLIPWAY_RUN"]).parent / "session.json"


def status(told: dict, environment) -> dict:
    """The answer for the windows; the session is extended at the portal only."""
    left, hub = told["seconds_left"], environment.get("JUPYTERHUB_BASE_URL", "/")
    home = f"{environment.get('JUPYTERHUB_HOST', '')}{hub}hub/home"
    return {
        "name": told["name"],
        "now": iso(time.time()),
        "ends": None if left is None else iso(told["at"] + left),
        "unused": told["unused"] is True,
        "ending": False,
        "kept": told["kept"],
        "extend": [],
        "killed": 0,
        "killed_text": "",
        "ended": home,
        "sessions": environment.get("SLIPWAY_SESSIONS", home),
    }


def iso(seconds: float) -> str:
    """Seconds since 1970 as JavaScript reads them."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
