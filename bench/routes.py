"""The routes to one upstream that bench/proxy.py compares, each with its processes running.

"ours" is started by the code that real sessions and sites use: `slipway init` and `slipway render
haproxy` for the portal's side, the runner's Gateway for the job's side, HaproxyRoutes between them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from portal.adapters.certificates import CertificateAuthority
from portal.adapters.haproxy.routes import HaproxyRoutes
from portal.cli.main import main as slipway
from portal.config import Settings, load_settings
from portal.core.apps.access import gateway_name
from portal.core.auth.person import hash_secret
from portal.node.runner import gateway

ROOT = Path(__file__).parents[1]
SESSION = "5e5510" + "0" * 26
COOKIE = "a-random-value-as-long-as-those-of-the-portal"
APPS = ("files", "echo")
FILES, ECHO, HOP, CHP, CHP_API = 9001, 9002, 9003, 9004, 9005
KILOBYTE, MEGABYTE, GIGABYTE = 1 << 10, 1 << 20, 1 << 30

NGINX = """
daemon off;
user root;
pid {folder}/{name}.pid;
error_log stderr error;
worker_processes auto;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  client_body_temp_path {folder}/{name}-body;
  proxy_temp_path {folder}/{name}-proxy;
{servers}
}}
"""
UPSTREAM = """
  sendfile on;
  server {{
    listen 127.0.0.1:{files};
    listen unix:{run}/files.sock;
    root {folder}/files;
    location = /small {{ return 200 "{small}"; }}
  }}
"""
PLAIN_HOP = """
  upstream files {{ server 127.0.0.1:{files}; keepalive 64; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{hop};
    client_max_body_size 0;
    proxy_http_version 1.1;
    proxy_request_buffering off;
    proxy_max_temp_file_size 0;
    location / {{ proxy_pass http://files; proxy_set_header Connection ""; }}
    location = /echo {{
      proxy_pass http://127.0.0.1:{echo};
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $http_connection;
    }}
  }}
"""
SITE = """
[web]
public_url = "http://localhost:9080"
listen = "127.0.0.1:9080"
listen_runners = "127.0.0.1:9443"
{web}
[sessions]
templates = "{templates}"
apps = "{apps}"
[state]
directory = "{state}"
run = "{run}"
"""


@dataclass(frozen=True)
class Endpoint:
    """Address and credentials of one upstream for a client."""

    port: int
    host: str
    cookie: str = ""


@dataclass(frozen=True)
class Route:
    """A route to the upstreams."""

    name: str
    files: Endpoint
    echo: Endpoint
    programs: tuple[int, ...] = ()
    """Processes on the route; their children count as well."""


class Routes:
    """Starts all routes, and stops them on exit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._stop_gateway: Callable[[], None] = lambda: None
        self.ours_front = self.ours_gateway = 0
        """Process ids."""

    def __enter__(self) -> list[Route]:
        try:
            return self._open()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_error: object) -> None:
        self._stop_gateway()
        for process in reversed(self._started):
            process.terminate()
            process.wait()

    def _open(self) -> list[Route]:
        run = self._folder / "gateway"
        gateway.make_directory(str(run))
        self._upstreams(run)
        settings = prepare_site(self._folder)
        running, listener = start_gateway(settings, self._folder, run)
        self._stop_gateway = running.stop
        wait_for(lambda: bool(gateways()), "the gateway")
        (self.ours_gateway,) = gateways()
        self.ours_front = self._front(settings, listener.getsockname()[1])
        hop = self._nginx("hop", PLAIN_HOP.format(files=FILES, echo=ECHO, hop=HOP))
        chp = self._chp()
        endpoints = (endpoint(settings, "files"), endpoint(settings, "echo"))
        return [
            Route("direct", plain(FILES), plain(ECHO)),
            Route("nginx", plain(HOP), plain(HOP), (hop,)),
            Route("CHP", plain(CHP), plain(CHP), (chp,)),
            Route("ours", *endpoints, (self.ours_front, self.ours_gateway)),
        ]

    def _start(self, *argv: str) -> int:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        self._started.append(process)
        return process.pid

    def _nginx(self, name: str, servers: str) -> int:
        file = self._folder / f"{name}.conf"
        file.write_text(NGINX.format(folder=self._folder, name=name, servers=servers))
        return self._start("nginx", "-c", str(file))

    def _upstreams(self, run: Path) -> None:
        files = self._folder / "files"
        files.mkdir()
        files.chmod(0o755)
        (files / "megabyte").write_bytes(os.urandom(MEGABYTE))
        with (files / "gigabyte").open("wb") as file:
            file.truncate(GIGABYTE)
        small = "x" * KILOBYTE
        servers = UPSTREAM.format(folder=self._folder, run=run, files=FILES, small=small)
        self._nginx("upstream", servers)
        self._start(sys.executable, "-m", "bench.upstream", str(run / "echo.sock"), str(ECHO))
        for port in (FILES, ECHO):
            wait_for_port(port)

    def _front(self, settings: Settings, gateway_port: int) -> int:
        config = self._folder / "haproxy.cfg"
        config.write_text(front_config(self._folder))
        pid = self._start("haproxy", "-W", "-q", "-db", "-f", str(config))
        endpoint = Path(settings.state.run) / "haproxy.sock"
        wait_for(endpoint.is_socket, str(endpoint))
        HaproxyRoutes(settings.state.run).add_all(
            {
                f"{label(settings, app)}.{hash_secret(COOKIE)}": (
                    f"127.0.0.1@{gateway_port}@{gateway_name(app, SESSION)}"
                )
                for app in APPS
            }
        )
        return pid

    def _chp(self) -> int:
        pid = self._start(
            *("configurable-http-proxy", "--ip=127.0.0.1", f"--port={CHP}", "--log-level=error"),
            *(f"--api-port={CHP_API}", f"--default-target=http://127.0.0.1:{FILES}"),
        )
        for port in (CHP, CHP_API):
            wait_for_port(port)
        route = json.dumps({"target": f"http://127.0.0.1:{ECHO}"}).encode()
        urllib.request.urlopen(f"http://127.0.0.1:{CHP_API}/api/routes/echo", route).close()
        return pid


def plain(port: int) -> Endpoint:
    """An endpoint without a cookie."""
    return Endpoint(port, f"127.0.0.1:{port}")


def endpoint(settings: Settings, app: str) -> Endpoint:
    """The endpoint of an app's origin, with its cookie."""
    name = label(settings, app)
    host = settings.web.app_url(name).partition("://")[2]
    return Endpoint(int(host.rpartition(":")[2]), host, f"{settings.web.app_cookie(name)}={COOKIE}")


def label(settings: Settings, app: str) -> str:
    """The label of an app's origin."""
    if settings.web.apps == "ports" and settings.web.pool:
        return str(settings.web.pool[0] + APPS.index(app))
    return app + "0123456789abcdef"


def prepare_site(folder: Path, web: str = "") -> Settings:
    """A site's settings and state in a folder, created by `slipway init`; `web`: more settings."""
    (folder / "slipway.toml").write_text(
        SITE.format(
            templates=ROOT / "templates",
            apps=ROOT / "apps",
            state=folder / "state",
            run=folder / "run",
            web=web,
        )
    )
    ask_slipway(folder, "init")
    return load_settings(str(folder / "slipway.toml"))


def front_config(folder: Path) -> str:
    """HAProxy's configuration of this site, from `slipway render haproxy`."""
    return ask_slipway(folder, "render", "haproxy")


def start_gateway(
    settings: Settings, folder: Path, run: Path
) -> tuple[gateway.Gateway, socket.socket]:
    """The gateway of a session with its sockets in `run`, started as the runner does."""
    toolkit = folder / "toolkit"
    (toolkit / "bin").mkdir(parents=True)
    for program in ("haproxy", "openssl"):
        (toolkit / "bin" / program).symlink_to(str(shutil.which(program)))
    authority = CertificateAuthority(settings.state.ca_file(""))
    making = gateway.request_certificate(str(toolkit), str(run), SESSION)
    certificate = authority.sign_gateway(SESSION, gateway.read_request(making))
    listener = gateway.listen((0, 0))
    running = gateway.Gateway(str(toolkit), str(run), listener, failed=sys.exit)
    running.start(SESSION, APPS, certificate, authority.client_ca())
    return running, listener


def ask_slipway(folder: Path, *argv: str) -> str:
    """The command's output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = slipway(["--config", str(folder / "slipway.toml"), *argv])
    if status != 0:
        raise SystemExit(f"slipway {' '.join(argv)} failed")
    return printed.getvalue()


def wait_for_port(port: int) -> None:
    """Wait until a port on loopback accepts connections."""
    with socket.socket() as probe:
        wait_for(lambda: probe.connect_ex(("127.0.0.1", port)) == 0, f"port {port}")


def wait_for(there: Callable[[], bool], what: str) -> None:
    """Wait until the condition holds."""
    for _ in range(200):
        if there():
            return
        time.sleep(0.05)
    raise SystemExit(f"not there after ten seconds: {what}")


def children(parent: int) -> list[int]:
    """The descendants of a process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    tree = [parent]
    for ancestor in tree:
        tree += [pid for pid, above in parents.items() if above == ancestor]
    return tree[1:]


def gateways() -> list[int]:
    """The processes that are a session's gateway."""
    return [pid for pid in children(os.getpid()) if "gateway.cfg" in command(pid)]


def command(pid: int) -> str:
    """The command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
