"""Nobody but a proxy of the site says which address a client has: limits and logs need it."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator

import pytest

from tests.slurm.test_apply import SETTINGS, apply, change
from tests.support.cluster import Cluster, wait_for

PROXY, STRANGER = "n2", "n1"
"""Machines of the cluster; the first one stands for the site's load balancer."""
CLAIMED = "203.0.113.7"
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


def first_line(address: str) -> bytes:
    """The PROXY protocol, version 1."""
    return f"PROXY TCP4 {address} 203.0.113.1 4444 443\r\n".encode()


def header_v2(address: str) -> bytes:
    """The PROXY protocol, version 2."""
    numbers = bytes(map(int, address.split("."))) + bytes([203, 0, 113, 1])
    ports = (4444).to_bytes(2, "big") + (443).to_bytes(2, "big")
    return b"\r\n\r\n\0\r\nQUIT\n" + bytes([0x21, 0x11, 0, 12]) + numbers + ports


Form = Callable[[str], bytes]
FORMS = pytest.mark.parametrize("form", [first_line, header_v2])
HEADERS = {
    "X-Forwarded-For": CLAIMED,
    "Forwarded": f"for={CLAIMED}",
    "X-Real-IP": CLAIMED,
    "X-Slipway-Frontend": CLAIMED,
    "X_Forwarded_For": CLAIMED,
}


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


def refused(
    cluster: Cluster, machine: str, first: bytes = b"", headers: dict[str, str] | None = None
) -> str:
    """The address for which the portal counts a wrong password from a machine."""
    found: list[str] = []

    def attempt() -> bool:
        said, account = guess(cluster, machine, first, headers or {})
        assert said in ("HTTP/1.1 401", "HTTP/1.1 429"), said
        found[:] = [account]
        return said.endswith("401")

    # Other tests guess as well: ten a minute are permitted.
    wait_for("a refusal that is not one for haste", attempt, 90, 5)
    return logged_address(cluster, found[0])


def address(cluster: Cluster, machine: str) -> str:
    return cluster.ctl("address", machine).strip()


@pytest.fixture(scope="module")
def behind_a_proxy(cluster: Cluster) -> Iterator[None]:
    """The site's settings name a proxy; afterwards they are as before."""
    before = cluster.run("portal", "cat", SETTINGS)
    try:
        change(cluster, f'trusted_proxies = ["{address(cluster, PROXY)}"]')
        done = apply(cluster)
        assert done.returncode == 0, done.stdout + done.stderr
        yield
    finally:
        cluster.ctl("put", "portal", SETTINGS, stdin=before)
        assert apply(cluster).returncode == 0


def test_a_header_claims_nothing(cluster: Cluster) -> None:
    assert refused(cluster, STRANGER, headers=HEADERS) == address(cluster, STRANGER)


@FORMS
def test_without_proxies_nobody_speaks_for_others(cluster: Cluster, form: Form) -> None:
    said, account = guess(cluster, STRANGER, form(CLAIMED), {})
    assert said in ("closed", "", "HTTP/1.1 400")
    assert account not in cluster.log_tail("portal")


@FORMS
@pytest.mark.timeout(600)
def test_strangers_do_not_speak_for_others(
    cluster: Cluster, behind_a_proxy: None, form: Form
) -> None:
    # As themselves, as the proxy, as somebody else.
    for claimed in (CLAIMED, address(cluster, PROXY), "127.0.0.1"):
        said, account = guess(cluster, STRANGER, form(claimed), {})
        assert said in ("closed", "", "HTTP/1.1 400")
        assert account not in cluster.log_tail("portal")
    assert refused(cluster, STRANGER, headers=HEADERS) == address(cluster, STRANGER)


@FORMS
@pytest.mark.timeout(600)
def test_clients_behind_the_proxy_are_whom_it_names(
    cluster: Cluster, behind_a_proxy: None, form: Form
) -> None:
    """Their own headers, which a proxy for TCP passes on, claim nothing."""
    client = f"198.51.100.{secrets.randbelow(250) + 1}"
    assert refused(cluster, PROXY, form(client), HEADERS) == client


def test_the_proxy_itself_must_name_somebody(cluster: Cluster, behind_a_proxy: None) -> None:
    said, account = guess(cluster, PROXY, b"", {})
    assert said in ("closed", "", "HTTP/1.1 400")
    assert account not in cluster.log_tail("portal")
