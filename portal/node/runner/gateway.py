"""The job's one TCP port: HAProxy with mutual TLS in front of the apps' unix sockets."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
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
    # Until TLS is complete: anybody may connect on the node's network.
    timeout client 10s
    timeout server 10s
    timeout tunnel 24h
frontend gate
    bind fd@{fd} ssl crt {certificates}/gateway.pem strict-sni \
ca-file {certificates}/client_ca.pem \
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


def render(
    directory: str,
    session: str,
    apps: Iterable[str],
    fd: int,
    connections: int,
    certificates: str = "",
) -> str:
    """Render HAProxy's configuration: an exact name for each app, no default.

    `certificates`: their folder, if it is not the directory.
    """
    names = [CONTROL, *apps]
    return CONFIG.format(
        connections=connections,
        fd=fd,
        directory=directory,
        certificates=certificates or directory,
        rules="\n".join(RULE.format(app=app, session=session) for app in names),
        backends="".join(BACKEND.format(app=app, directory=directory) for app in names),
    )


class Gateway:
    """HAProxy on the runner's listener, restarted whenever it dies.

    With other certificates a second one takes over the listener, and the first ends with its last
    connection.
    """

    def __init__(
        self, toolkit: str, directory: str, listener: socket.socket, failed: Callable[[], None]
    ) -> None:
        self._program = f"{toolkit}/bin/haproxy"
        self._directory = directory
        self._listener = listener
        self._failed = failed
        self._names: tuple[str, tuple[str, ...]] = ("", ())
        self._folder = directory
        self._renewals = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._earlier: list[subprocess.Popen[bytes]] = []
        self._stopping = False

    def start(self, session: str, apps: Iterable[str], certificate: str, client_ca: str) -> None:
        """Write HAProxy's files, start it, and supervise it."""
        self._names = session, tuple(apps)
        self._write(self._directory, certificate, client_ca)
        self._supervise()

    def renew(self, certificate: str, client_ca: str) -> None:
        """Use another certificate and trust other clients; open connections stay.

        Raises GatewayFailed; then nothing has changed.
        """
        self._renewals += 1
        folder, old_folder = f"{self._directory}/gateway-{self._renewals}", self._folder
        os.mkdir(folder, 0o700)
        self._write(folder, certificate, client_ca)
        check = subprocess.run(
            [self._program, "-c", "-q", "-f", f"{folder}/gateway.cfg"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            pass_fds=(self._listener.fileno(),),
        )
        if check.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            text = check.stdout.decode(errors="replace").strip()
            raise GatewayFailed(f"HAProxy does not accept them: {text[:300]}")
        earlier, self._folder = self._process, folder
        self._supervise()
        self._earlier = [process for process in self._earlier if process.poll() is None]
        if earlier is not None:
            self._earlier.append(earlier)
            earlier.send_signal(signal.SIGUSR1)  # ends after its last connection
        if old_folder != self._directory:
            shutil.rmtree(old_folder, ignore_errors=True)

    def stop(self) -> None:
        """Kill HAProxy; the session is over, so there is nothing to drain."""
        self._stopping = True
        for process in (self._process, *self._earlier):
            if process is not None and process.poll() is None:
                process.kill()

    def _write(self, folder: str, certificate: str, client_ca: str) -> None:
        session, apps = self._names
        with open(f"{self._directory}/gateway.key", encoding="ascii") as file:
            key = file.read()
        connections, fd = affordable_connections(), self._listener.fileno()
        config = render(self._directory, session, apps, fd, connections, folder)
        if not certificate.endswith("\n"):
            certificate += "\n"
        files = {"gateway.pem": certificate + key, "client_ca.pem": client_ca}
        for name, text in {**files, "gateway.cfg": config}.items():
            with open(f"{folder}/{name}", "w", encoding="ascii") as file:
                file.write(text)

    def _supervise(self) -> None:
        process = self._process = self._spawn()
        threading.Thread(target=self._watch, args=(process,), name="gateway", daemon=True).start()

    def _spawn(self) -> subprocess.Popen[bytes]:
        fd = self._listener.fileno()
        return subprocess.Popen(
            [self._program, "-q", "-db", "-f", f"{self._folder}/gateway.cfg"],
            stdin=subprocess.DEVNULL,
            pass_fds=(fd,),
        )

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        quick_deaths = 0
        while True:
            started = time.monotonic()
            code = process.wait()
            if self._stopping or process is not self._process:
                return
            quick_deaths = quick_deaths + 1 if time.monotonic() - started < 2 else 0
            if quick_deaths >= 5:
                say("The gateway keeps failing; giving up")
                self._failed()
                return
            # Slurm ends all processes of a job at once: then the runner is about to stop as well.
            time.sleep(0.1 * quick_deaths)
            if self._stopping or process is not self._process:
                return
            say(f"The gateway ended ({code}); restarting it")
            process = self._process = self._spawn()


def make_directory(path: str) -> None:
    """Create the private directory of the sockets; refuse another's, or one open for writing.

    Apptainer makes its scratch folders readable for others.
    """
    os.umask(0o077)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        status = os.lstat(path)
        if status.st_uid != os.getuid() or status.st_mode & 0o170022 != 0o040000:
            raise GatewayFailed(f"{path} is not a private directory") from None
        os.chmod(path, 0o700)
