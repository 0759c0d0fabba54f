"""Why the portal cannot be reached, in words."""

from __future__ import annotations

import contextlib
import errno
import socket
import ssl
import threading

import pytest

from portal.node.runner.callback import Callback, Unreachable
from portal.node.runner.probe.causes import explain
from portal.node.runner.spec import parse_spec
from tests.support.runner_portal import FakePortal, spec_text


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "knows no address of portal (DNS"),
        (ConnectionRefusedError(111, "Connection refused"), "nothing listens on portal, port 8443"),
        (TimeoutError("timed out"), "does not answer in time; a firewall"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "no route to portal"),
        (OSError(errno.EIO, "Input/output error"), "portal, port 8443: Input/output error"),
        (ssl.SSLError(1, "[SSL: TLSV1_ALERT] x"), "TLS failed"),
    ],
)
def test_words(error: OSError, words: str) -> None:
    assert words in explain(error, "portal", 8443)


def refusal(portal: FakePortal, **changes: object) -> str:
    """Why a real call fails."""
    with pytest.raises(Unreachable) as caught:
        Callback(parse_spec(spec_text(portal, **changes))).post("usage", {})
    return str(caught.value)


def test_a_certificate_for_another_name(portal: FakePortal) -> None:
    other = f"https://127.0.0.1:{portal.port}"
    assert "certificate is not for 127.0.0.1; `slipway init`" in refusal(portal, callback=other)


def test_a_certificate_of_another_authority(portal: FakePortal) -> None:
    foreign = portal.client.certificate.read_text()
    assert "not of the portal's authority" in refusal(portal, callback_ca=foreign)


def test_a_port_without_tls(portal: FakePortal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def answer() -> None:
            # It ends with the test, which may have closed the port before another connection.
            with contextlib.suppress(OSError):
                for _ in range(2):
                    stream, _address = plain.accept()
                    with stream:
                        stream.recv(100)
                        stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        url = f"https://localhost:{plain.getsockname()[1]}"
        assert "does not speak TLS" in refusal(portal, callback=url)
