"""The complete runner as a process: callbacks, gateway with mutual TLS, apps, an orderly end."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.core.session.end_reasons import start_failure
from portal.node.runner.apps import app as apps
from tests.support.runner_apps import DEMO, wait_until
from tests.support.runner_portal import SESSION, TOKEN, FakePortal
from tests.support.runner_process import APP, RunnerProcess, children_of, needs_programs

pytestmark = needs_programs


@pytest.fixture
def runner(portal: FakePortal, directory: str) -> Iterator[RunnerProcess]:
    portal.start = [dict(APP)]
    runner = RunnerProcess(portal, directory)
    yield runner
    runner.process.kill()
    runner.process.wait()
    for pid in [*apps.processes_of(DEMO), *children_of(runner.process.pid)]:
        subprocess.run(["kill", "-9", str(pid)], check=False, capture_output=True)


def test_from_ready_to_the_end(runner: RunnerProcess, portal: FakePortal) -> None:
    ready = portal.wait_for("/ready")
    assert (ready["job_id"], ready["node"]) == ("7", "n1")
    portal.wait_for(f"/apps/{DEMO}", state="ready")
    portal.wait_for("/usage")
    port, ours = int(ready["port"]), portal.client_pem
    assert runner.get(port, f"{DEMO}.{SESSION}.slipway", ours) == "HTTP/1.1 200 X"
    assert runner.get(port, f"control.{SESSION}.slipway", ours) == "HTTP/1.1 200 OK"
    began = time.monotonic()
    assert runner.end() == 0
    assert time.monotonic() - began < 3
    assert not list(apps.processes_of(DEMO))
    log = runner.log.read_text()
    assert "Ready on n1" in log
    assert TOKEN not in log
    assert "PRIVATE" not in log


def test_only_the_portal_is_accepted(runner: RunnerProcess, portal: FakePortal) -> None:
    port = int(portal.wait_for("/ready")["port"])
    portal.wait_for(f"/apps/{DEMO}", state="ready")
    # Signed by the wrong CA, by none, and a name that is not served.
    own = portal.gateway.issue("own", f"DNS:*.{SESSION}.slipway", "clientAuth")
    for client in (None, own):
        with pytest.raises(OSError, match=r"(?i)alert|reset|unknown"):
            assert runner.get(port, f"{DEMO}.{SESSION}.slipway", client)
    with pytest.raises(OSError, match=r"(?i)alert|eof|unrecognized|unknown|reset|closed"):
        assert runner.get(
            port, f"{DEMO}.ffffffffffffffffffffffffffffffff.slipway", portal.client_pem
        )
    with contextlib.suppress(OSError):
        assert runner.get(port, f"xdemo.{SESSION}.slipway", portal.client_pem) == ""


def test_killed_gateway_is_restarted_on_its_port(runner: RunnerProcess, portal: FakePortal) -> None:
    port = int(portal.wait_for("/ready")["port"])
    portal.wait_for(f"/apps/{DEMO}", state="ready")
    runner.get(port, f"{DEMO}.{SESSION}.slipway", portal.client_pem)
    subprocess.run(["pkill", "-9", "-P", str(runner.process.pid), "haproxy"], check=True)
    # The runner's own socket keeps the connection waiting until HAProxy is back.
    assert runner.get(port, f"{DEMO}.{SESSION}.slipway", portal.client_pem) == "HTTP/1.1 200 X"
    assert "restarting it" in runner.log.read_text()


def test_portal_that_forgets_the_session_ends_it(runner: RunnerProcess, portal: FakePortal) -> None:
    portal.wait_for(f"/apps/{DEMO}", state="ready")
    portal.status = 410
    assert runner.process.wait(5) == 0
    assert not list(apps.processes_of(DEMO))


def test_failed_app_is_reported_and_the_session_goes_on(portal: FakePortal, directory: str) -> None:
    portal.start = [{**APP, "script": "echo no such file; exit 1"}]
    runner = RunnerProcess(portal, directory)
    message = portal.wait_for(f"/apps/{DEMO}", state="failed")
    assert message["log"] == "no such file"
    assert portal.wait_for("/usage", apps={DEMO: "failed"})
    assert runner.end() == 0


def test_apps_of_the_spec_start_before_the_portal_answers(
    portal: FakePortal, directory: str
) -> None:
    portal.status = 503
    runner = RunnerProcess(portal, directory, start=[APP])
    wait_until(lambda: runner.log.exists() and f"{DEMO}: ready" in runner.log.read_text(), 10)
    portal.status = None
    portal.wait_for(f"/apps/{DEMO}", state="ready")
    assert runner.end(signal.SIGINT) == 0


def test_no_zombies(runner: RunnerProcess, portal: FakePortal) -> None:
    portal.wait_for(f"/apps/{DEMO}", state="ready")
    for pid in apps.processes_of(DEMO):
        subprocess.run(["kill", "-9", str(pid)], check=True)
    portal.wait_for(f"/apps/{DEMO}", state="failed")
    states = [Path(f"/proc/{pid}/stat").read_text() for pid in children_of(runner.process.pid)]
    assert states
    assert not [state for state in states if state.rpartition(")")[2].split()[0] == "Z"]


def test_invalid_spec_is_reported_and_ends_at_once(portal: FakePortal, directory: str) -> None:
    runner = RunnerProcess(portal, directory, ports=[5, 1])
    assert runner.process.wait(10) == 2
    assert "ports: must be" in runner.log.read_text()
    assert TOKEN not in runner.log.read_text()


def test_without_its_share_of_a_gpu_it_does_not_start(portal: FakePortal, directory: str) -> None:
    runner = RunnerProcess(portal, directory, gpu=True)
    assert runner.process.wait(10) == 1
    told = start_failure(1, runner.log.read_text())
    assert told.startswith("The session did not start: its share of a GPU cannot be read (")
    assert not portal.reports
