"""The X server's cookie, command and start."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from portal.node.runner.desktop import xserver
from portal.node.runner.desktop.xserver import NoServer


@pytest.fixture
def toolkit(directory: str) -> Path:
    """A toolkit whose X server is yet to be written."""
    (Path(directory) / "bin").mkdir()
    return Path(directory)


def install(toolkit: Path, script: str) -> None:
    """Put a script in place of the X server."""
    program = toolkit / "bin" / "Xvnc"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_the_cookie_is_private_and_differs_each_time(directory: str) -> None:
    path = Path(directory) / "Xauthority"
    xserver.write_authority(str(path))
    first = path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    host = socket.gethostname().encode()
    local = b"\x01\x00" + len(host).to_bytes(2, "big") + host + b"\x00\x00"
    assert first.startswith(local + b"\x00\x12MIT-MAGIC-COOKIE-1\x00\x10")
    assert first.count(first[-16:]) == 2
    xserver.write_authority(str(path))
    assert path.read_bytes()[-16:] != first[-16:]


def test_no_port_and_no_abstract_socket_is_open() -> None:
    line = " ".join(xserver.words("/opt/slipway", "/run/vnc.sock", "/run/cookie", 5, "mine"))
    assert "-rfbport -1 -rfbunixpath /run/vnc.sock -rfbunixmode 0600" in line
    assert "-nolisten tcp -nolisten local" in line
    assert "-auth /run/cookie" in line


def test_its_display_is_known_once_it_is_ready(toolkit: Path) -> None:
    install(toolkit, 'pwd >&2; [ "$1" = -displayfd ] && echo 7 > /proc/self/fd/"$2"; exec sleep 30')
    process, display = xserver.start(str(toolkit), str(toolkit), "mine")
    assert display == ":7"
    process.kill()
    process.wait()


@pytest.mark.parametrize("script", ["exit 1", "exec sleep 30"])
def test_one_that_does_not_get_ready_is_ended(
    toolkit: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xserver, "PATIENCE", 0.3)
    install(toolkit, script)
    with pytest.raises(NoServer, match="has not started"):
        xserver.start(str(toolkit), str(toolkit), "mine")
