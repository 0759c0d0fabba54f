"""The checks in the container: name, TCP, TLS, cgroups and the gateway's port.

Facts are printed to the job's log, one `slipway-check KEY VALUE` per line; the portal evaluates
them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import time

from .. import gateway, wire
from ..callback import tls_context
from ..log import write
from ..spec import Spec, parse_object, parse_spec
from ..usage import CGROUP, read_memory_limit
from .causes import explain

SECONDS = 10.0
"""For each step towards the portal."""
NO_SESSION = "0" * 32
"""Id of a session that does not exist in any portal."""
MOST_CALLS = 100


def run(text: str) -> int:
    """Try everything once, print the facts, and wait for the portal's call."""
    try:
        message = parse_object("spec", text)
        seconds, word = float(str(message["wait_seconds"])), str(message["probe"])
        # The rest of the instructions has the form of a session's without apps.
        spec = parse_spec(text)
    except (KeyError, ValueError) as error:
        fact("problem", f"the instructions are invalid: {error}")
        return 2
    fact("container", "yes")
    _fences()
    listener = _listen(spec)
    _reach(spec)
    if listener is not None:
        with listener:
            called = wait_for_call(listener, word.encode(), seconds)
        fact("called", "yes" if called else "no")
    fact("done", "yes")
    return 0


def _listen(spec: Spec) -> socket.socket | None:
    """Bind the gateway's port before the rest is tried: the portal can call meanwhile."""
    try:
        listener = gateway.listen(spec.ports)
    except gateway.GatewayFailed as error:
        fact("port-problem", str(error))
        return None
    fact("port", str(listener.getsockname()[1]))
    return listener


def fact(key: str, value: str) -> None:
    """Print one fact; `value` becomes one line."""
    write(f"slipway-check {key} {' '.join(value.split())[:400]}\n".encode(errors="replace"))


def _fences(root: str = CGROUP) -> None:
    limit = read_memory_limit(root)
    fact("memory-limit", "none" if limit is None else str(limit))
    affinity = os.sched_getaffinity(0)
    # An affinity alone can be changed by every process; a cgroup's cpuset stays in effect.
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    fact("cpus-inside", str(len(os.sched_getaffinity(0))))
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, affinity)


def _reach(spec: Spec) -> None:
    """Try each step towards the portal; the first that fails ends it."""
    host, port = spec.callback
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        fact("name", ", ".join(sorted({str(entry[4][0]) for entry in addresses})))
        with socket.create_connection((host, port), timeout=SECONDS) as plain:
            fact("tcp", str(plain.getpeername()[0]))
            with tls_context(spec.callback_ca).wrap_socket(plain, server_hostname=host) as stream:
                fact("tls", str(stream.version()))
                _ask(stream, host)
    except OSError as error:
        fact("reach-problem", explain(error, host, port))


def _ask(stream: ssl.SSLSocket, host: str) -> None:
    """Report for a session that does not exist, which a portal answers with an error."""
    try:
        status, _body, _reusable = wire.post(
            stream, host, f"/runner/v1/sessions/{NO_SESSION}/usage", NO_SESSION, b"{}"
        )
    except wire.TooOften:
        status = 429
    fact("answer", str(status))


def wait_for_call(listener: socket.socket, word: bytes, seconds: float) -> bool:
    """Answer the portal's call by repeating its word; False if none comes in time."""
    deadline = time.monotonic() + seconds
    for _ in range(MOST_CALLS):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        listener.settimeout(left)
        try:
            stream, _address = listener.accept()
            with stream:
                stream.settimeout(min(max(deadline - time.monotonic(), 0.1), 2.0))
                if stream.recv(len(word)) == word:
                    stream.sendall(word)
                    return True
        except OSError:
            continue  # another program's connection, or a broken one
    return False
