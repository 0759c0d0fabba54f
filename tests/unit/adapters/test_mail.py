"""Mail by SMTP, to a small server in this process."""

from __future__ import annotations

import email
import socketserver
import threading
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage

import pytest

from portal.adapters.mail import SmtpServer
from portal.config.mail import MailSettings
from portal.core.interfaces.mail import MailUnavailable
from portal.core.mail.messages import Mail

STOP = "https://portal.example.org/mail/stop/alice/0123"
MAIL = Mail("alice", "größe1 has started", "It runs on n1.\n.\nA line with a dot above.")


class Server(socketserver.ThreadingTCPServer):
    """Accepts mail, or answers each recipient with `refusal`."""

    daemon_threads = True
    refusal = b""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.received: list[bytes] = []


class _Conversation(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        self.wfile.write(b"220 mail.example.org\r\n")
        while line := self.rfile.readline():
            verb = line[:4].upper()
            if verb == b"RCPT" and self.server.refusal:
                self.wfile.write(self.server.refusal + b"\r\n")
            elif verb == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                self._receive()
            else:
                self.wfile.write(b"250 mail.example.org\r\n")

    def _receive(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line[1:] if line.startswith(b"..") else line)
        self.server.received.append(b"".join(lines))
        self.wfile.write(b"250 accepted\r\n")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield running
        running.shutdown()


def settings(server: Server, **changes: object) -> MailSettings:
    values = {
        "host": "127.0.0.1", "port": server.server_address[1], "tls": "none",
        "sender": "slipway@example.org", "recipient": "{user}@example.org",
    }  # fmt: skip
    return MailSettings.model_validate(values | changes)


def test_a_mail_arrives_as_it_was_written(server: Server) -> None:
    SmtpServer(settings(server)).send("alice@example.org", MAIL, STOP)
    received = email.message_from_bytes(server.received[0], policy=policy.default)
    assert isinstance(received, EmailMessage)
    assert received["Subject"] == "größe1 has started"
    assert (received["From"], received["To"]) == ("slipway@example.org", "alice@example.org")
    assert received["Auto-Submitted"] == "auto-generated"
    assert received["List-Unsubscribe"] == f"<{STOP}>"
    text = received.get_content().replace("\r\n", "\n")
    assert text.startswith(MAIL.text)
    assert text.endswith(f"To end all of them: {STOP}\n")


@pytest.mark.parametrize("refusal", [b"450 later", b"421 too much"])
def test_what_is_refused_for_now_is_sent_later(server: Server, refusal: bytes) -> None:
    server.refusal = refusal
    with pytest.raises(MailUnavailable):
        SmtpServer(settings(server)).send("alice@example.org", MAIL, STOP)


def test_what_is_refused_for_good_is_dropped(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.refusal = b"550 no such user"
    SmtpServer(settings(server)).send("alice@example.org", MAIL, STOP)
    assert "mail to alice@example.org is refused: [550]" in caplog.text


@pytest.mark.parametrize("changes", [{"tls": "starttls"}, {"tls": "tls"}, {"port": 1}])
def test_without_the_wanted_encryption_nothing_is_sent(
    server: Server, changes: dict[str, object]
) -> None:
    with pytest.raises(MailUnavailable, match=r"127\.0\.0\.1: "):
        SmtpServer(settings(server, **changes)).send("alice@example.org", MAIL, STOP)
    assert server.received == []


def test_a_subject_cannot_add_headers(server: Server) -> None:
    forged = Mail("alice", "x\nBcc: bob@example.org", "text")
    with pytest.raises(ValueError, match="linefeed"):
        SmtpServer(settings(server)).send("alice@example.org", forged, STOP)
    assert server.received == []
