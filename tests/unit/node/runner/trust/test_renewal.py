"""A running session follows the portal's new authorities, and its connections stay."""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.core.session_job import runner_protocol
from portal.node.runner.apps import app as apps
from portal.node.runner.trust.renewal import fingerprint
from tests.support.runner_apps import DEMO, wait_until
from tests.support.runner_portal import SESSION, Authority, FakePortal
from tests.support.runner_process import APP, RunnerProcess, children_of, needs_programs

pytestmark = needs_programs
CONTROL = f"control.{SESSION}.slipway"
NAME = f"{DEMO}.{SESSION}.slipway"
RENEWED = "uses the portal's new certificates"


@pytest.fixture
def portal(tmp_path: Path) -> Iterator[FakePortal]:
    """A portal with authorities of its own."""
    portal = FakePortal(tmp_path / "portal").up()
    portal.start = [dict(APP)]
    yield portal
    portal.down()


@pytest.fixture
def runner(portal: FakePortal, directory: str) -> Iterator[RunnerProcess]:
    runner = RunnerProcess(portal, directory)
    yield runner
    runner.process.kill()
    runner.process.wait()
    for pid in [*apps.processes_of(DEMO), *children_of(runner.process.pid)]:
        subprocess.run(["kill", "-9", str(pid)], check=False, capture_output=True)


def connect(portal: FakePortal, port: int) -> ssl.SSLSocket:
    """A connection to the app's gateway, as the portal's HAProxy opens it."""
    context = ssl.create_default_context(cafile=str(portal.gateway.certificate))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.load_cert_chain(portal.client_pem)
    plain = socket.create_connection(("127.0.0.1", port), 5)
    return context.wrap_socket(plain, server_hostname=NAME)


def test_both_sides_compute_the_same_hash() -> None:
    one, other = "-----BEGIN\nA\n", "-----BEGIN\nB\n"
    assert fingerprint(one, other) == runner_protocol.fingerprint(f"{one}\n", other.strip())
    assert fingerprint(one, other) != fingerprint(other, one)


def renewed(runner: RunnerProcess, times: int) -> None:
    """Wait until the session has followed."""
    wait_until(lambda: runner.log.read_text().count(RENEWED) == times, 10)


def refused(portal: FakePortal, port: int) -> bool:
    """Whether the session's gateway is not the one that this portal's authority signed."""
    try:
        connect(portal, port).close()
    except ssl.SSLCertVerificationError:
        return True
    except OSError:  # in between: closed by the gateway that ends
        pass
    return False


def test_a_session_follows_twice_and_its_streams_stay(
    runner: RunnerProcess, portal: FakePortal
) -> None:
    port = int(portal.wait_for("/ready")["port"])
    portal.wait_for(f"/apps/{DEMO}", state="ready")
    with connect(portal, port) as stream:
        for number in (1, 2):
            earlier = portal.gateway
            portal.rotate(number)
            renewed(runner, number)
            # A new connection needs the new authorities, once the first gateway accepts no more.
            current, portal.gateway = portal.gateway, earlier
            wait_until(lambda: refused(portal, port), 10)
            portal.gateway = current
            # The app serves one connection at a time.
            assert runner.get(port, CONTROL, portal.client_pem) == "HTTP/1.1 200 OK"
        # The stream from before goes on.
        stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert stream.recv(12) == b"HTTP/1.1 200"
    # With its last connection, the gateway from before ends.
    wait_until(lambda: len(haproxies(runner)) == 1, 10)
    assert runner.end() == 0


def haproxies(runner: RunnerProcess) -> list[int]:
    names = {pid: Path(f"/proc/{pid}/comm") for pid in children_of(runner.process.pid)}
    return [pid for pid, comm in names.items() if comm.exists() and "haproxy" in comm.read_text()]


def test_a_gateway_that_would_not_start_changes_nothing(
    runner: RunnerProcess, portal: FakePortal, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(portal.wait_for("/ready")["port"])
    portal.wait_for(f"/apps/{DEMO}", state="ready")
    used, client = portal.gateway, portal.client_pem
    portal.rotate(1)
    bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    monkeypatch.setattr(portal.gateway, "sign", lambda *_: bad)
    wait_until(lambda: "HAProxy does not accept them" in runner.log.read_text(), 10)
    portal.gateway = used
    assert runner.get(port, NAME, client) == "HTTP/1.1 200 X"
    assert len(haproxies(runner)) == 1


def test_a_gateway_that_is_restarted_afterwards_uses_them_too(
    runner: RunnerProcess, portal: FakePortal
) -> None:
    port = int(portal.wait_for("/ready")["port"])
    portal.wait_for(f"/apps/{DEMO}", state="ready")
    portal.rotate(2)
    renewed(runner, 1)
    subprocess.run(["pkill", "-9", "-P", str(runner.process.pid), "haproxy"], check=True)
    assert runner.get(port, NAME, portal.client_pem) == "HTTP/1.1 200 X"


def test_authorities_that_the_portal_does_not_use_are_not_taken_over(
    runner: RunnerProcess, portal: FakePortal, tmp_path: Path
) -> None:
    port = int(portal.wait_for("/ready")["port"])
    portal.wait_for(f"/apps/{DEMO}", state="ready")
    used, client = portal.gateway, portal.client_pem
    portal.callback_ca = Authority(tmp_path / "other", "web-ca").certificate.read_text()
    portal.rotate(3)
    wait_until(lambda: "not used yet" in runner.log.read_text(), 10)
    ours = len(portal.reports)
    wait_until(lambda: len(portal.reports) > ours + 2, 10)  # it still reports
    portal.gateway = used
    assert runner.get(port, NAME, client) == "HTTP/1.1 200 X"
    assert runner.log.read_text().count("not used yet") == 1
