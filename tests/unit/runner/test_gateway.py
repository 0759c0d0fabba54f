"""The gateway's configuration, its port and its private directory."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from portal.runner import gateway

SESSION = "0123456789abcdef0123456789abcdef"
GOLDEN = Path(__file__).parents[2] / "golden" / "gateway.cfg"


def test_configuration_is_the_golden_one() -> None:
    text = gateway.render("/var/tmp/.slipway", SESSION, ["jupyterlab", "terminal"], 5, 2000)
    assert text == GOLDEN.read_text()


def test_names_match_exactly_and_nothing_else_is_served() -> None:
    text = gateway.render("/d", SESSION, ["terminal"], 5, 2000)
    assert "verify required" in text
    assert "strict-sni" in text
    assert "default_backend" not in text
    assert f"ssl_fc_sni -i terminal.{SESSION}.slipway }}" in text


def test_free_port_of_the_range() -> None:
    with gateway.listen((0, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(gateway.GatewayFailed, match=str(port)):
            gateway.listen((port, port))
        with gateway.listen((port, port + 20)) as other:
            assert port < other.getsockname()[1] <= port + 20


def test_listener_accepts_ipv4() -> None:
    with (
        gateway.listen((0, 0)) as listener,
        socket.create_connection(("127.0.0.1", listener.getsockname()[1]), 2) as stream,
    ):
        assert stream.getpeername()[0] == "127.0.0.1"


def test_directory_is_private(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        path = tmp_path / "run"
        gateway.make_directory(str(path))
        assert path.stat().st_mode & 0o777 == 0o700
        gateway.make_directory(str(path))
        path.chmod(0o755)
        with pytest.raises(gateway.GatewayFailed):
            gateway.make_directory(str(path))
        link = tmp_path / "link"
        path.chmod(0o700)
        link.symlink_to(path)
        with pytest.raises(gateway.GatewayFailed):
            gateway.make_directory(str(link))
    finally:
        os.umask(before)
