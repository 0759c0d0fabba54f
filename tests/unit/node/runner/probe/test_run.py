"""The probe in the container: what it prints, and how it waits for the portal."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from portal.node.runner.__main__ import is_probe
from portal.node.runner.probe.run import run, wait_for_call
from tests.support.runner_portal import FakePortal


def instructions(portal: FakePortal, **changes: object) -> str:
    """What `slipway check --session` sends."""
    return json.dumps(portal.spec(apps=[], probe="a-word", wait_seconds=0.05) | changes)


def facts(capfd: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What was printed."""
    lines = capfd.readouterr().out.splitlines()
    assert all(line.startswith("slipway-check ") for line in lines)
    words = (line.split(" ", 2) for line in lines)
    return {key: value for _, key, value in words}


def test_everything_works(portal: FakePortal, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(instructions(portal)) == 0
    found = facts(capfd)
    assert found["container"] == found["done"] == "yes"
    assert found["tls"].startswith("TLSv1")
    assert found["answer"] == "401"
    assert "127.0.0.1" in found["name"]
    assert found["called"] == "no"
    assert int(found["port"]) > 0
    assert int(found["cpus-inside"]) > 0
    assert "reach-problem" not in found


def test_the_first_step_that_fails_is_named(
    portal: FakePortal, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(instructions(portal, callback="https://no-such-host.invalid:8443")) == 0
    found = facts(capfd)
    assert "knows no address of no-such-host.invalid" in found["reach-problem"]
    assert "tcp" not in found
    portal.down()
    assert run(instructions(portal)) == 0
    assert "connection refused" in facts(capfd)["reach-problem"]


def test_invalid_instructions(portal: FakePortal, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(instructions(portal, callback="http://portal")) == 2
    assert "callback: must be https" in facts(capfd)["problem"]


def test_only_the_portals_word_counts_as_its_call() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done: list[bool] = []
        thread = threading.Thread(
            target=lambda: done.append(wait_for_call(listener, b"a-word", 10))
        )
        thread.start()
        with socket.create_connection(listener.getsockname()) as other:
            other.sendall(b"x-word")
            assert other.recv(10) == b""
        with socket.create_connection(listener.getsockname()) as ours:
            ours.sendall(b"a-word")
            assert ours.recv(10) == b"a-word"
        thread.join(5)
        assert done == [True]
        assert not wait_for_call(listener, b"a-word", 0.05)


def test_a_session_with_such_a_variable_is_no_probe(portal: FakePortal) -> None:
    assert is_probe(instructions(portal))
    assert not is_probe(json.dumps(portal.spec(env={"probe": "x"})))
    assert not is_probe('{"probe"')
