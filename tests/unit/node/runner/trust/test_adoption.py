"""A portal that has lost the session: it goes on, and is taken in again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.runner.callback import Callback
from portal.node.runner.spec import Spec, parse_spec
from portal.node.runner.trust.adoption import Claim
from tests.support.runner_apps import DEMO, wait_until
from tests.support.runner_portal import TOKEN, FakePortal, spec_text
from tests.support.runner_process import APP, RunnerProcess, needs_programs

pytestmark = needs_programs
PAGE = "<html>There is something else here.</html>"
ABOUT = {"name": "warmlarch12", "environment": "python", "later": [1]}
HASH = hashlib.sha256(TOKEN.encode()).hexdigest()


@pytest.fixture
def proof(directory: str) -> Path:
    return Path(directory) / "proof"


@pytest.fixture
def lost(portal: FakePortal, directory: str, proof: Path) -> Iterator[RunnerProcess]:
    """A runner whose portal does not know its session at first."""
    portal.start, portal.lost = [dict(APP)], True
    runner = RunnerProcess(portal, directory, adoption={"proof": str(proof), "about": ABOUT})
    yield runner
    if runner.process.poll() is None:
        runner.end()


def test_a_lost_session_is_taken_in_and_its_gateway_made_known(
    lost: RunnerProcess, portal: FakePortal, proof: Path
) -> None:
    asked = portal.wait_for("/adopt")
    assert asked == {"job_id": "7", "node": "n1", "about": ABOUT}
    assert proof.read_text() == f"{HASH}\n"
    assert proof.stat().st_mode & 0o777 == 0o600
    port = portal.wait_for("/ready")["port"]
    portal.wait_for(f"/apps/{DEMO}", state="ready")
    portal.wait_for("/usage")
    # The same while it runs, of an app that is not started again.
    proof.unlink()
    portal.reports.clear()
    portal.lost = True
    portal.wait_for("/adopt")
    assert portal.wait_for("/ready")["port"] == port
    assert portal.wait_for("/usage", apps={DEMO: "ready"})
    assert proof.read_text() == f"{HASH}\n"
    assert lost.get(port, f"{DEMO}.{'0123456789abcdef' * 2}.slipway", portal.client_pem)
    assert lost.log.read_text().count(f"{DEMO}: starting") == 1
    assert TOKEN not in lost.log.read_text()
    portal.status = 410
    assert lost.process.wait(5) == 0


def test_it_goes_on_whatever_answers(lost: RunnerProcess, portal: FakePortal) -> None:
    portal.wait_for("/usage")
    portal.adopts = False
    for status, text in ((401, "{}"), (401, PAGE), (403, PAGE), (404, PAGE), (410, PAGE)):
        portal.status, portal.text = status, text
        portal.reports.clear()
        portal.wait_for("/usage")
        portal.reports.clear()
        portal.wait_for("/usage")
        assert lost.process.poll() is None, (status, text)
    portal.status, portal.text, portal.lost = None, None, True
    portal.reports.clear()
    portal.wait_for("/usage")
    assert lost.process.poll() is None


def test_a_gateway_that_an_older_backup_does_not_know_is_reported_again(
    lost: RunnerProcess, portal: FakePortal
) -> None:
    portal.wait_for("/usage")
    portal.reports.clear()
    portal.text = '{"ready": false}'
    portal.wait_for("/ready")
    portal.text = None
    portal.wait_for("/usage")
    assert lost.process.poll() is None


def test_without_instructions_it_only_waits(portal: FakePortal, directory: str) -> None:
    """The spec is an earlier portal's."""
    portal.lost = True
    runner = RunnerProcess(portal, directory)
    wait_until(lambda: runner.log.exists() and "does not know" in runner.log.read_text(), 5)
    time.sleep(0.5)
    assert not [path for _, path, _ in portal.reports if path.endswith("/adopt")]
    portal.lost = False
    portal.wait_for("/usage")
    assert runner.end() == 0


@pytest.fixture
def claim(portal: FakePortal, proof: Path) -> Iterator[Claim]:
    spec: Spec = parse_spec(spec_text(portal, adoption={"proof": str(proof), "about": {}}))
    callback = Callback(spec)
    yield Claim(callback, spec, {"job_id": "7", "node": "n1", "port": 1})
    callback.close()


def test_it_asks_ever_more_seldom_and_says_so_once(
    claim: Claim,
    portal: FakePortal,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    portal.lost, portal.adopts = True, False
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for _ in range(360):
        assert not claim.ask()
        clock[0] += 10
    asked = len(portal.reports)
    assert 15 < asked < 40
    assert capfd.readouterr().out.count("does not know this session") == 1
    portal.adopts = True
    clock[0] += 300
    assert claim.ask()
    assert "has taken this session in" in capfd.readouterr().out


def test_a_link_in_the_place_of_the_proof_is_not_followed(claim: Claim, proof: Path) -> None:
    victim = proof.parent / "victim"
    victim.write_text("mine")
    Path(f"{proof}.new").symlink_to(victim)
    claim.prove()
    assert victim.read_text() == "mine"
    assert not proof.exists()
