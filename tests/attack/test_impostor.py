"""After alice's session, bob listens on her port: her address never leads to him."""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from websockets.exceptions import InvalidStatus

from tests.support.apps import Kernel
from tests.support.client import OVER, Api, Json, Visitor
from tests.support.cluster import Cluster, healthy, wait_for

IMPOSTOR = (Path(__file__).parent / "impostor.py").read_text()
NOTES = "/tmp/heard-{port}"
PAGE = {"Accept": "text/html", "Sec-Fetch-Dest": "document"}
OWN = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=n1 "
    "-addext subjectAltName=DNS:{name} -keyout own.pem -out own.crt 2>/dev/null "
    "&& cat own.crt >> own.pem"
)


@pytest.fixture
def certificates(bob: Api, cluster: Cluster) -> list[str]:
    """Bob's options: no certificate, a self-signed one, and the one of his own gateway."""
    kernel = Kernel(bob.open(bob.running()["id"], "jupyterlab"))
    code = "import json; print(json.dumps(open('/opt/slipway-run/gateway.pem').read()))"
    pem = kernel.value(code)
    kernel.close()
    assert "PRIVATE KEY" in pem
    cluster.run("login", "sh", "-c", "cat > gateway.pem", user="bob", stdin=pem)
    return ["", "/home/bob/own.pem", "/home/bob/gateway.pem"]


def _notes(cluster: Cluster, node: str, port: int) -> list[dict[str, str]]:
    """What the impostor at this port recorded: a line when he listens, one per connection."""
    text = cluster.run(node, "cat", NOTES.format(port=port), check=False)
    return [json.loads(line) for line in text.splitlines()]


@contextmanager
def impostor(cluster: Cluster, node: str, port: int, certificate: str) -> Iterator[None]:
    """Bob listening on a port, verified to deceive a client without checks."""
    notes = NOTES.format(port=port)
    cluster.run("login", "sh", "-c", "cat > impostor.py", user="bob", stdin=IMPOSTOR)
    words = f"impostor.py {port} '{certificate}' {notes}"
    cluster.shell(node, f"rm -f {notes}")
    cluster.shell(node, f"setsid python3 {words} >/dev/null 2>/tmp/impostor.err &", user="bob")
    try:
        wait_for("bob at the port", lambda: _notes(cluster, node, port) or None, 90)
        assert (
            _connect_trusting(cluster.ctl("address", node).strip(), port, bool(certificate))
            == "evil"
        )
        yield
    finally:
        cluster.run(node, "pkill", "-u", "bob", "-f", "impostor.py")


def _connect_trusting(address: str, port: int, secure: bool) -> str:
    """Connect to him as a client that accepts every certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    stream = socket.create_connection((address, port), 10)
    if secure:
        stream = context.wrap_socket(stream)
    with stream:
        stream.sendall(b"GET /gullible HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while part := stream.recv(65536):
            answer += part
    return answer.decode().rpartition("\r\n")[2]


def _port_of(api: Api, session: str) -> int:
    log = api.ask("GET", f"/sessions/{session}/log")["log"]
    found = re.search(r"Ready on \w+, port (\d+)", log)
    assert found, log
    return int(found[1])


def _try_access(visitor: Visitor) -> list[int]:
    """Everything that alice's browser may still try; never bob's response."""
    ways: list[Callable[[], requests.Response]] = [
        lambda: visitor.get("/lab", headers=PAGE, allow_redirects=False),
        lambda: visitor.get("/api/contents/"),
        lambda: visitor.send("POST", "/api/kernels", json={"name": "python3"}),
    ]
    # In parallel: HAProxy tries several times to reach a server that it trusts.
    with ThreadPoolExecutor(len(ways) + 1) as pool:
        opened = pool.submit(visitor.websocket, "/api/events/subscribe")
        answers = list(pool.map(lambda way: way(), ways))
        assert isinstance(opened.exception(), InvalidStatus)
    assert not [answer.text for answer in answers if "evil" in answer.text]
    return [answer.status_code for answer in answers]


@pytest.mark.timeout(300)
def test_her_address_never_leads_to_bob(
    alice: Api, certificates: list[str], cluster: Cluster
) -> None:
    session = alice.running()
    with cluster.ports_free_at_once(session["node"]):
        _check_her_address(alice, session, certificates, cluster)


def _check_her_address(
    alice: Api, session: Json, certificates: list[str], cluster: Cluster
) -> None:
    identifier, node = session["id"], session["node"]
    visitor = alice.open(identifier, "jupyterlab")
    port = _port_of(alice, identifier)
    cluster.shell("login", OWN.format(name=f"jupyterlab.{identifier}.slipway"), user="bob")
    # Her session ends while the portal is down, so HAProxy still routes her browser to that port.
    for daemon in ("web", "worker"):
        cluster.daemon("stop", "portal", daemon)
    try:
        cluster.run("login", "scancel", session["job_id"], user="alice")
        free = f"! ss -tlnH 'sport = :{port}' | grep -q ."
        wait_for("the port", lambda: cluster.attempt("exec", node, "--", "sh", "-c", free), 30)
        wait_for("her job's end", lambda: identifier not in _running(cluster), 30)
        for certificate in certificates:
            with impostor(cluster, node, port, certificate):
                assert set(_try_access(visitor)) == {503}, certificate
                # He was connected to (one of these was our own check), and received nothing.
                wait_for("connections", lambda: len(_notes(cluster, node, port)) > 2, 10)
                connections = _notes(cluster, node, port)[1:]
            messages = [one["said"] for one in connections if "/gullible" not in one["said"]]
            assert not [words for words in messages if "HTTP/" in words or visitor.cookie in words]
    finally:
        for daemon in ("web", "worker"):
            cluster.daemon("start", "portal", daemon)
    wait_for("the portal", lambda: healthy(cluster), 120)
    with impostor(cluster, node, port, certificates[-1]):
        alice.wait_state(identifier, *OVER)
        wait_for("the route revoked", lambda: 303 in _try_access(visitor), 20)
        assert _try_access(visitor)[1:] == [401, 401]


def _running(cluster: Cluster) -> set[str]:
    return {name for name, job in cluster.queue().items() if job.state in ("RUNNING", "COMPLETING")}


def test_the_route_to_her_port_is_revoked_at_the_end(
    alice: Api, certificates: list[str], cluster: Cluster
) -> None:
    """The ordinary end: the route is revoked at once, although the browser keeps the cookie."""
    session = alice.running()
    visitor = alice.open(session["id"], "jupyterlab")
    port = _port_of(alice, session["id"])
    with cluster.ports_free_at_once(session["node"]):
        alice.stop(session["id"])
        alice.wait_state(session["id"], *OVER)
        with impostor(cluster, session["node"], port, certificates[-1]):
            assert _try_access(visitor) == [303, 401, 401]
            notes = _notes(cluster, session["node"], port)
            assert len(notes) == 2, notes  # he listens, our own check, and nobody else
