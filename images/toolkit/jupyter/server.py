"""Jupyter's side of kernels that other users on the node cannot reach; config/ registers it.

Whatever other settings say, kernels of this server communicate over unix sockets. A Python kernel
is started through kernel.py, which does the rest. Any other kernel is watched by the server until
it first answers. One that listens on TCP, or ends because it knows nothing else, is started again
in a network namespace of its own, where HAProxy connects the server's unix sockets to its ports.

It is an extension as well. What cells print without their window is kept for the notebook
(recording.py). JupyterHub's servers tell their own windows the time left; elsewhere the portal
does, at the app's origin.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import time
from pathlib import Path

import zmq.asyncio
from jupyter_server.base.handlers import APIHandler
from jupyter_server.services.kernels.kernelmanager import ServerKernelManager
from jupyter_server.utils import url_path_join
from tornado.web import HTTPError, authenticated

try:
    import slipway_recording as recording
except ImportError:  # Jupyter Server 1
    recording = None

START = str(Path(__file__).with_name("kernel.py"))
LAUNCHERS = ("ipykernel_launcher", "ipykernel")
LISTEN = "0A"
WATCH_SECONDS = 20.0
APART_SECONDS = 10.0
PAUSE = 0.1
REASON = "it listens on TCP port %s, where everybody on this node could reach it"
ENDED = "it ended before it answered"
NOT_HERE = (
    "The kernel %s does not start: %s. Kernels that know only TCP run in a network of their own "
    "here, where it ended as well. Its own words are in the session's log."
)
CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
FIRST_PORT = 9000  # the sockets' numbers begin at 1
FORWARD = """\
global
    maxconn 200
    nbthread 1
defaults
    mode tcp
    timeout connect 5s
    timeout client 24h
    timeout server 24h
    retries 0
"""
FORWARD_ONE = "listen {name}\n    bind unix@{path} mode 600\n    server kernel 127.0.0.1:{port}\n"


class KernelManager(ServerKernelManager):
    """Starts a kernel that nobody else can reach, or not at all."""

    _guarded = False
    _apart = False
    _trying = False
    _watch: asyncio.Task[None] | None = None

    def format_kernel_cmd(self, extra_arguments=None):
        """The kernel's command: with the user's Python, kernel.py, or a network of its own."""
        if self.transport != "ipc":
            raise RuntimeError("Slipway: kernels communicate over unix sockets only")
        command = with_users_python(super().format_kernel_cmd(extra_arguments), os.environ)
        guarded = through_kernel_py(command)
        self._guarded = guarded != command
        return apart(guarded, self.connection_file) if self._apart else guarded

    def write_connection_file(self, **options):
        """Place the kernel's sockets in the server's own private folder, whatever is configured."""
        self.transport = "ipc"
        self.ip = os.path.splitext(self.connection_file)[0] + "-ipc"
        super().write_connection_file(**options)

    async def start_kernel(self, *arguments, **options):
        """Start it; raise HTTPError, whose text the notebook shows, if it cannot be used."""
        self._trying = True
        try:
            await super().start_kernel(*arguments, **options)
            problem = await self._problem(WATCH_SECONDS)
            if problem and not self._apart:
                self._apart = True
                text = "Slipway: the kernel %s is ended: %s; it is tried in a network of its own"
                self.log.error(text, self.kernel_name, problem)
                await self._async_restart_kernel(now=True)
                if await self._problem(APART_SECONDS):
                    await self._give_up(HTTPError(500, NOT_HERE % (self.kernel_name, problem)))
        finally:
            self._trying = False
        self._begin_to_watch()

    async def _give_up(self, error):
        self.stop_restarter()
        await self._async_kill_kernel()
        # What asked for the kernel looks here for what went wrong.
        self._ready = asyncio.get_event_loop().create_future()
        self._ready.set_exception(error)
        raise error

    async def _problem(self, seconds):
        """Why the kernel cannot be used; "" once it answers, or when the time is over."""
        if self._guarded:
            return ""
        with zmq.asyncio.Context.instance().socket(zmq.REQ) as heart:
            heart.linger = 0
            heart.connect(f"ipc://{self.ip}-{self.hb_port}")
            await heart.send(b"ping")
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                ports = tcp_ports(getattr(self.provisioner, "pid", None))
                if ports:
                    return REASON % ", ".join(map(str, ports))
                if not await self._async_is_alive():
                    return ENDED
                if await heart.poll(1000 * PAUSE):
                    break
        return ""

    async def _async_post_start_kernel(self, **options):
        await super()._async_post_start_kernel(**options)
        if recording is not None:
            recording.listen(self)
        if not self._trying:
            self._begin_to_watch()

    async def _async_cleanup_resources(self, *arguments, **options):
        if recording is not None:
            recording.stop(self)
        await super()._async_cleanup_resources(*arguments, **options)

    def _begin_to_watch(self):
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


def with_users_python(command: list[str], environment) -> list[str]:
    """The command with the Python that sees the user's packages in place of this server's own."""
    python = environment.get("SLIPWAY_PYTHON", "")
    folder, name = os.path.split(command[0])
    ours = folder == os.path.dirname(sys.executable) and name.startswith("python")
    return [python, *command[1:]] if ours and os.path.exists(python) else command


def apart(command: list[str], connection_file: str) -> list[str]:
    """The command in a network namespace of its own, where the kernel listens on TCP.

    Writes its connection file and HAProxy's configuration beside the server's connection file.
    """
    base = os.path.splitext(connection_file)[0]
    told = json.loads(Path(connection_file).read_text(encoding="utf-8"))
    text = FORWARD
    for name in CHANNELS:
        path, port = f"{told['ip']}-{told[name + '_port']}", FIRST_PORT + told[name + "_port"]
        text += FORWARD_ONE.format(name=name, path=path, port=port)
        told[name + "_port"] = port
    told.update(transport="tcp", ip="127.0.0.1")
    for end, content in ((".cfg", text), ("-tcp.json", json.dumps(told))):
        Path(base + end).write_text(content, encoding="utf-8")  # in a private folder
    toolkit = Path(__file__).parents[1]
    words = [word.replace(connection_file, base + "-tcp.json") for word in command]
    words[0] = shutil.which(words[0]) or words[0]
    enter = [f"{toolkit}/bin/python", "-IS", f"{toolkit}/runner/apps/netns.py"]
    return [*enter, f"{toolkit}/bin/haproxy", f"{base}.cfg", *words]


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
    if recording is not None:
        recording.attach(server)
    if "JUPYTERHUB_SERVICE_PREFIX" not in os.environ:
        return  # the portal answers at the origins of its own apps
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
