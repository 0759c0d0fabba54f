"""The gateway's configuration, its port and its private directory."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.node.runner import gateway

SESSION = "0123456789abcdef0123456789abcdef"
GOLDEN = Path(__file__).parents[3] / "golden" / "gateway.cfg"


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
        path.chmod(0o755)  # as Apptainer makes a scratch folder
        gateway.make_directory(str(path))
        assert path.stat().st_mode & 0o777 == 0o700
        path.chmod(0o770)
        with pytest.raises(gateway.GatewayFailed):
            gateway.make_directory(str(path))
        link = tmp_path / "link"
        path.chmod(0o700)
        link.symlink_to(path)
        with pytest.raises(gateway.GatewayFailed):
            gateway.make_directory(str(link))
    finally:
        os.umask(before)


@pytest.fixture
def authorities(tmp_path: Path) -> Path:
    """The portal's, and a gateway's certificate and key."""
    ca = tmp_path / "ca"
    prepare_authorities(ca, "portal")
    issued = CertificateAuthority(ca).issue_gateway(SESSION)
    (tmp_path / "gateway.pem").write_text(issued)
    (tmp_path / "client_ca.pem").write_text(CertificateAuthority(ca).client_ca())
    return ca


def echo(path: Path) -> None:
    """One connection to an app."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        stream, _ = listener.accept()
        with stream:
            while data := stream.recv(100):
                stream.sendall(data)


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")
def test_who_has_no_certificate_is_cut_and_an_idle_app_is_not(
    tmp_path: Path, authorities: Path
) -> None:
    """Anybody on the node's network can connect; 2000 silent ones held all places for a day."""
    threading.Thread(target=echo, args=(tmp_path / "demo.sock",), daemon=True).start()
    context = ssl.create_default_context(cafile=str(authorities / "gateway_ca.pem"))
    context.load_cert_chain(str(authorities / "client.pem"))
    with gateway.listen((0, 0)) as listener:
        place, fd = ("127.0.0.1", listener.getsockname()[1]), listener.fileno()
        config = tmp_path / "gateway.cfg"
        config.write_text(gateway.render(str(tmp_path), SESSION, ["demo"], fd, 100))
        argv = ["haproxy", "-q", "-db", "-f", str(config)]
        with subprocess.Popen(argv, pass_fds=(fd,)) as process:
            try:
                with (
                    socket.create_connection(place, 60) as plain,
                    context.wrap_socket(plain, server_hostname=f"demo.{SESSION}.slipway") as app,
                    socket.create_connection(place, 60) as stranger,
                ):
                    app.sendall(b"x")
                    assert app.recv(1) == b"x"
                    assert stranger.recv(1) == b""
                    time.sleep(3)  # longer than either has been silent by its limit
                    app.sendall(b"y")
                    assert app.recv(1) == b"y"
            finally:
                process.kill()
