"""A login node that lets an account in, and then answers nothing."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.ssh import accounts, command, diagnosis
from portal.config import LoginSettings


class MuteChannel:
    """A channel whose server never says whether it runs a command."""

    def __init__(self) -> None:
        self._closed = threading.Event()
        self.timeout = 0.0

    def exec_command(self, _command: str) -> None:
        """Wait as paramiko does: for ever, unless the channel is closed."""
        assert self._closed.wait(60), "without a deadline"

    def close(self) -> None:
        """Ends all waits."""
        self._closed.set()

    def settimeout(self, seconds: float) -> None:
        """Nothing is ever received."""
        self.timeout = seconds

    def recv(self, _count: int) -> bytes:
        """The end of output."""
        assert self._closed.is_set()
        return b""


class MuteTransport:
    """A connection on which somebody has logged in."""

    def open_session(self, timeout: float) -> MuteChannel:
        """A channel of its own for each command."""
        assert timeout > 0
        return MuteChannel()

    def close(self) -> None:
        """Nothing to close."""


def test_asking_has_a_deadline() -> None:
    begun, channel = time.monotonic(), MuteChannel()
    command.execute(channel, "true", begun + 0.2)  # type: ignore[arg-type]
    assert time.monotonic() - begun < 30


def test_the_status_of_a_password_is_unknown_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "_ANSWER_SECONDS", 0.2)
    transport: Any = MuteTransport()
    assert accounts._ask(transport) == ""


def test_a_check_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(diagnosis, "_SECONDS", 0.2)
    monkeypatch.setattr(diagnosis, "open_transport", lambda _settings: MuteTransport())
    monkeypatch.setattr(diagnosis, "_authenticate", lambda *_: None)
    prepare_authorities(tmp_path, "portal")
    settings, authority = LoginSettings(), CertificateAuthority(tmp_path)
    assert diagnosis._observed_address(settings, authority, "reader") == "another"
