"""The job's one TCP port: HAProxy with mutual TLS in front of the apps' unix sockets."""

from __future__ import annotations

import os
import random
import resource
import socket
import subprocess
import threading
import time

from .log import say
from .spec import CONTROL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CONNECTIONS = 2000
BACKLOG = 512

CONFIG = """\
global
    maxconn {connections}
    nbthread 1
    tune.ssl.cachesize 128
    ssl-default-bind-options ssl-min-ver TLSv1.2
    ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:\
TLS_AES_256_GCM_SHA384
defaults
    mode tcp
    timeout connect 5s
    timeout client 24h
    timeout server 24h
frontend gate
    bind fd@{fd} ssl crt {directory}/gateway.pem strict-sni ca-file {directory}/client_ca.pem \
verify required alpn http/1.1
{rules}
{backends}"""
RULE = "    use_backend {app} if {{ ssl_fc_sni -i {app}.{session}.slipway }}"
BACKEND = "backend {app}\n    server app unix@{directory}/{app}.sock\n"


class GatewayFailed(Exception):
    """The gateway cannot be started."""


def listen(ports: tuple[int, int]) -> socket.socket:
    """Bind a free port of the range, on IPv6 and IPv4; (0, 0) lets the kernel choose.

    Connections wait in this socket while HAProxy starts or restarts.
    """
    low, high = ports
    count = high - low + 1
    # A random start, so that jobs that start together do not all try the same ports.
    first = random.randrange(count)  # noqa: S311 - not a secret
    for offset in range(count):
        port = low + (first + offset) % count
        try:
            return _listen_on(port)
        except OSError as error:
            last = error
    raise GatewayFailed(f"no free port from {low} to {high}: {last}")


def _listen_on(port: int) -> socket.socket:
    try:
        listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        address = "::"
    except OSError:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        address = "0.0.0.0"  # noqa: S104 - the portal connects from another machine
    try:
        listener.bind((address, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def request_certificate(toolkit: str, directory: str, session: str) -> subprocess.Popen[bytes]:
    """Start to create the key and the CSR (on stdout); the key never leaves `directory`."""
    argv = [f"{toolkit}/bin/openssl", "req", "-new", "-nodes", "-newkey", "ec"]
    argv += ["-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", f"{directory}/gateway.key"]
    argv += ["-subj", f"/CN={session}.slipway"]
    argv += ["-addext", f"subjectAltName=DNS:*.{session}.slipway"]
    config = f"{directory}/openssl.cnf"
    with open(config, "w", encoding="ascii") as file:
        file.write("[req]\ndistinguished_name = name\n[name]\n")
    return subprocess.Popen(
        [*argv, "-config", config],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def read_request(process: subprocess.Popen[bytes]) -> str:
    """Wait for the CSR and return it as PEM."""
    request, errors = process.communicate()
    if process.returncode != 0:
        raise GatewayFailed(f"cannot create a key: {errors.decode(errors='replace').strip()}")
    return request.decode("ascii")


def affordable_connections() -> int:
    """Connections within the hard limit of open files, to which HAProxy raises its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return CONNECTIONS
    # Two files for each connection, and some for HAProxy itself.
    return max(10, min(CONNECTIONS, (hard - 100) // 2))


def render(directory: str, session: str, apps: Iterable[str], fd: int, connections: int) -> str:
    """Render HAProxy's configuration: an exact name for each app, no default."""
    names = [CONTROL, *apps]
    return CONFIG.format(
        connections=connections,
        fd=fd,
        directory=directory,
        rules="\n".join(RULE.format(app=app, session=session) for app in names),
        backends="".join(BACKEND.format(app=app, directory=directory) for app in names),
    )


class Gateway:
    """HAProxy on the runner's listener, restarted whenever it dies."""

    def __init__(
        self, toolkit: str, directory: str, listener: socket.socket, failed: Callable[[], None]
    ) -> None:
        self._program = f"{toolkit}/bin/haproxy"
        self._directory = directory
        self._listener = listener
        self._failed = failed
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def start(self, session: str, apps: Iterable[str], certificate: str, client_ca: str) -> None:
        """Write HAProxy's files, start it, and supervise it."""
        with open(f"{self._directory}/gateway.key", encoding="ascii") as file:
            key = file.read()
        connections = affordable_connections()
        config = render(self._directory, session, apps, self._listener.fileno(), connections)
        if not certificate.endswith("\n"):
            certificate += "\n"
        self._write("gateway.pem", certificate + key)
        self._write("client_ca.pem", client_ca)
        self._write("gateway.cfg", config)
        self._spawn()
        threading.Thread(target=self._watch, name="gateway", daemon=True).start()

    def stop(self) -> None:
        """Kill HAProxy; the session is over, so there is nothing to drain."""
        self._stopping = True
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _write(self, name: str, text: str) -> None:
        with open(f"{self._directory}/{name}", "w", encoding="ascii") as file:
            file.write(text)

    def _spawn(self) -> None:
        fd = self._listener.fileno()
        self._process = subprocess.Popen(
            [self._program, "-q", "-db", "-f", f"{self._directory}/gateway.cfg"],
            stdin=subprocess.DEVNULL,
            pass_fds=(fd,),
        )

    def _watch(self) -> None:
        quick_deaths = 0
        while self._process is not None:
            started = time.monotonic()
            code = self._process.wait()
            if self._stopping:
                return
            quick_deaths = quick_deaths + 1 if time.monotonic() - started < 2 else 0
            if quick_deaths >= 5:
                say("The gateway keeps failing; giving up")
                self._failed()
                return
            # Slurm ends all processes of a job at once: then the runner is about to stop as well.
            time.sleep(0.1 * quick_deaths)
            if self._stopping:
                return
            say(f"The gateway ended ({code}); restarting it")
            self._spawn()


def make_directory(path: str) -> None:
    """Create the private directory of the sockets; refuse another user's, or one open to others."""
    os.umask(0o077)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        status = os.lstat(path)
        if status.st_uid != os.getuid() or status.st_mode & 0o170077 != 0o040000:
            raise GatewayFailed(f"{path} is not a private directory") from None
