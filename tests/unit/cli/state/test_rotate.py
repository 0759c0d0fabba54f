"""`slipway rotate`: its steps, and when it refuses."""

from __future__ import annotations

import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from portal.adapters import rotation
from portal.adapters.certificates import CertificateAuthority
from portal.cli.main import main
from portal.core.session.session import State
from tests.support.certificates import signing_request
from tests.support.stored_sessions import store_session


def run(config: str, *words: str) -> int:
    return main(["--config", config, *words])


@pytest.fixture
def state(config: str, tmp_path: Path) -> Path:
    """The state directory of a new portal."""
    assert run(config, "init") == 0
    return tmp_path / "state"


def test_both_steps_for_gateways(
    config: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, "rotate", "gateways", "--finish") == 1
    assert "nothing has begun" in capsys.readouterr().err
    assert run(config, "rotate", "gateways", "--begin") == 0
    assert "systemctl reload slipway-proxy" in capsys.readouterr().out
    assert run(config, "rotate", "gateways") == 0
    assert "begun; next: slipway rotate gateways --finish" in capsys.readouterr().out
    assert run(config, "rotate", "gateways", "--finish") == 0
    assert rotation.stage(state / "ca") is rotation.Stage.NONE


def test_a_waiting_session_from_before_is_named(
    config: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_session(state)
    assert run(config, "rotate", "gateways", "--begin") == 0
    assert run(config, "rotate", "gateways", "--finish") == 1
    told = capsys.readouterr().err
    assert "1 sessions still need" in told
    assert "alice  silver1  SUBMITTING" in told
    assert rotation.stage(state / "ca") is rotation.Stage.BEGUN
    assert run(config, "rotate", "gateways", "--finish", "--force") == 0
    assert rotation.stage(state / "ca") is rotation.Stage.NONE


def test_a_waiting_session_from_after_the_first_step_needs_nothing(
    config: str, state: Path
) -> None:
    assert run(config, "rotate", "gateways", "--begin") == 0
    store_session(state, submitted=datetime.now(UTC) + timedelta(minutes=1))
    assert run(config, "rotate", "gateways", "--finish") == 0


class Gateway:
    """A session's gateway that answers each request; `renew` makes it follow."""

    def __init__(self, ca: Path, folder: Path, session: str) -> None:
        self._authority, self._folder, self._session = CertificateAuthority(ca), folder, session
        self._request = signing_request(folder / "key")
        self._context = self._load()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _load(self) -> ssl.SSLContext:
        pem = self._folder / "gateway.pem"
        pem.write_text(self._authority.sign_gateway(self._session, self._request))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem, self._folder / "key")
        context.load_verify_locations(cadata=self._authority.client_ca())
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def renew(self) -> None:
        self._context = self._load()

    def _serve(self) -> None:
        while True:
            plain, _ = self._listener.accept()
            try:
                with self._context.wrap_socket(plain, server_side=True) as stream:
                    stream.recv(1000)
                    stream.sendall(b"HTTP/1.1 404 Not Found\r\n\r\n")
            except OSError:
                plain.close()


def test_running_sessions_are_tried(
    config: str, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = Gateway(state / "ca", tmp_path, "a" * 32)
    now = datetime.now(UTC)
    where = {"address": "127.0.0.1", "port": gateway.port, "node": "n1", "ready": now}
    store_session(
        state, state=State.RUNNING, started=now, deadline=now + timedelta(hours=1), **where
    )
    assert run(config, "rotate", "gateways", "--begin") == 0
    assert run(config, "rotate", "gateways", "--finish") == 1
    assert "alice  silver1  RUNNING on n1, ends by" in capsys.readouterr().err
    gateway.renew()
    assert run(config, "rotate", "gateways", "--finish") == 0


def test_the_users_key_is_used_only_when_the_login_node_accepts_it(
    config: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (state / "ca" / "user_ca").read_bytes()
    assert run(config, "rotate", "user", "--finish") == 1
    assert run(config, "rotate", "user", "--begin") == 0
    line = (state / "ca" / "user_ca.pub").read_text().splitlines()[1]
    assert line in capsys.readouterr().out
    assert run(config, "rotate", "user", "--finish") == 1  # nothing listens there
    told = capsys.readouterr().err
    assert "does not accept the next key yet" in told
    assert line in told
    assert (state / "ca" / "user_ca").read_bytes() == before
    assert run(config, "rotate", "user", "--finish", "--force") == 0
    assert (state / "ca" / "user_ca").read_bytes() != before


def test_another_account_changes_nothing(
    config: str,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 4_000_000)
    before = {file: file.read_bytes() for file in (state / "ca").iterdir()}
    assert run(config, "rotate", "gateways", "--begin") == 1
    assert "belongs to the account" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in (state / "ca").iterdir()} == before


def test_before_init(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "state").mkdir()
    assert run(config, "rotate", "gateways", "--begin") == 1
    assert "slipway init" in capsys.readouterr().err
