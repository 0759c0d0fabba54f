"""Client addresses as the portal logs them."""

from __future__ import annotations

import json
import re
import secrets

from tests.support.cluster import Cluster, wait_for

FORGED_ADDRESS = "203.0.113.7"
"""An address of nobody's in the cluster."""
LOGIN = """
import json, socket, ssl, sys
told = json.loads(sys.stdin.read())
try:
    stream = socket.create_connection(("portal", 8080), 20)
    stream.sendall(bytes.fromhex(told["first"]))
    if told["secure"]:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        stream = context.wrap_socket(stream, server_hostname="localhost")
    stream.sendall(told["request"].encode())
    print(stream.recv(65536)[:12].decode(errors="replace"))
except OSError:
    print("closed")
"""


def guess(cluster: Cluster, machine: str, first: bytes, headers: dict[str, str]) -> tuple[str, str]:
    """A wrong password from a machine: the answer's first words, and the account."""
    account = f"ghost{secrets.token_hex(4)}"
    body = json.dumps({"username": account, "password": "wrong"})
    host = re.sub("^https?://", "", cluster.url)
    lines = [
        "POST /api/v1/tokens HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    told = {
        "first": first.hex(),
        "secure": cluster.secure,
        "request": "\r\n".join([*lines, "", body]),
    }
    said = cluster.run(machine, "python3", "-c", LOGIN, stdin=json.dumps(told))
    return said.strip(), account


def logged_address(cluster: Cluster, account: str) -> str:
    """The address that the portal's log has for a refusal."""

    def found() -> str | None:
        lines = re.findall(rf"login refused for {account} from (\S+)", cluster.log_tail("portal"))
        return str(lines[-1]) if lines else None

    return wait_for(f"a line about {account}", found, 30)


def refused_address(
    cluster: Cluster, machine: str, first: bytes = b"", headers: dict[str, str] | None = None
) -> str:
    """The address for which the portal counts a wrong password from a machine."""
    found: list[str] = []

    def attempt() -> bool:
        said, account = guess(cluster, machine, first, headers or {})
        assert said in ("HTTP/1.1 401", "HTTP/1.1 429"), said
        found[:] = [account]
        return said.endswith("401")

    # Other tests guess as well.
    cluster.forget_attempts()
    wait_for("a refusal that is not one for haste", attempt, 90, 5)
    return logged_address(cluster, found[0])


def address_of(cluster: Cluster, machine: str) -> str:
    return cluster.ctl("address", machine).strip()
