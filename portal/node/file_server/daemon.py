"""Starts the server in the background; one for each user, host and portal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import sys
import time

from portal.node.file_server.order import Order
from portal.node.file_server.server import FileServer
from portal.node.file_server.state import private_folder
from portal.node.file_server.user_files import roots_of, uploads_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

PATIENCE = 3.0
"""Seconds that an earlier server has to end."""


_WIDTH = 20
"""Characters of the PID in the lock file; the server's id follows."""


class StartError(Exception):
    """The server cannot start; the text says why."""


class StillRunningError(Exception):
    """The server that the order must not replace is running."""


def main() -> NoReturn:
    """Read an order (JSON) from stdin, start the server, print its port and end.

    An earlier server of the same portal is replaced, except the one in `unless`.
    """
    try:
        order = _read_order()
        lock = _take_lock(order)
        listener = listen(order.ports)
    except StillRunningError:
        print("\0" + json.dumps({"running": order.unless}), flush=True)
        sys.exit(0)
    except (StartError, OSError) as error:
        print(f"the file server cannot start: {error}", file=sys.stderr)
        sys.exit(1)
    port = listener.getsockname()[1]
    print("\0" + json.dumps({"address": _address(), "port": port}), flush=True)
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    _detach()
    os.chdir("/")
    _write_pid(lock, order.id)
    server = FileServer(order, listener)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server.serve_forever(poll_interval=1.0)
    os._exit(0)  # not waiting for threads that a file system holds up


def clean() -> NoReturn:
    """Read an order from stdin, remove expired uploads, print the number of others and end."""
    try:
        order = _read_order()
        left = uploads_of(order, roots_of(order)).clean()
    except OSError as error:
        print(f"uploads cannot be cleaned up: {error}", file=sys.stderr)
        sys.exit(1)
    print("\0" + json.dumps({"left": left}), flush=True)
    sys.exit(0)


def _read_order() -> Order:
    data = json.load(sys.stdin)
    ports, home = data.pop("ports", (0, 0)), os.path.expanduser("~")
    roots = {name: os.path.join(home, path) for name, path in data.pop("roots").items()}
    return Order(**data, roots=roots, ports=(ports[0], ports[1]))


def _address() -> str:
    """The address of this host that the portal connected to, from sshd."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 else socket.gethostbyname(socket.gethostname())


def _detach() -> None:
    """Release the SSH channel's descriptors, so that the command counts as ended."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def _take_lock(order: Order) -> int:
    """Lock a file for as long as the server runs; ends an earlier server."""
    path = os.path.join(private_folder(), f"slipway-files-{order.scope}")
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + PATIENCE
    while not _locked(lock):
        if order.unless and os.pread(lock, 64, _WIDTH) == order.unless.encode():
            raise StillRunningError
        late = time.monotonic() > deadline
        _end_earlier(lock, signal.SIGKILL if late else signal.SIGTERM)
        if late:
            deadline += PATIENCE
        time.sleep(0.05)
    _write_pid(lock, order.id)
    return lock


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end_earlier(lock: int, number: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        if (process := int(os.pread(lock, _WIDTH, 0) or b"0")) > 1:
            os.kill(process, number)


def _write_pid(lock: int, id: str) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid():<{_WIDTH}}{id}".encode(), 0)


def listen(ports: tuple[int, int]) -> socket.socket:
    """Bind a free port of the range on IPv6 and IPv4; (0, 0) lets the kernel choose.

    A port that another program has bound on only one address counts as taken.
    """
    for port in range(ports[0], ports[1] + 1):
        listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listener.bind(("::", port))
            listener.listen(128)
        except OSError:
            listener.close()
        else:
            return listener
    raise StartError(
        f"other programs on {socket.gethostname()} hold all ports from {ports[0]} to {ports[1]}; "
        "tell the administrators"
    )
