"""The login node's host key must be a known one, and a single method authenticates; over real SSH.

The server is paramiko's, in a thread.
"""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path

import paramiko
import pytest

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.ssh.connect import open_transport
from portal.adapters.ssh.login.passwords import PasswordCheck
from portal.config import LoginSettings
from portal.core.auth.accounts import Account
from portal.errors import Unavailable

PASSWORD = "correct horse"


def person(user: str) -> Account:
    """The account of anybody."""
    return Account(user, 2000)


class Sshd(paramiko.ServerInterface):
    """A login node that records authentication attempts."""

    def __init__(
        self,
        *keys: paramiko.PKey,
        second_factor: bool = False,
        at: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self.tried: list[str] = []
        self._second_factor = second_factor
        self._keys = keys
        self._listener = socket.create_server(at)
        self.port = int(self._listener.getsockname()[1])
        self._open: list[paramiko.Transport] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(sock)
            self._open.append(transport)
            for key in self._keys:
                transport.add_server_key(key)
            transport.start_server(event=threading.Event(), server=self)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends accept(), which would hold the port
        self._listener.close()
        for transport in self._open:
            transport.close()

    def get_allowed_auths(self, username: str) -> str:
        return "publickey,password,keyboard-interactive"

    def check_auth_none(self, username: str) -> int:
        self.tried.append("none")
        return paramiko.common.AUTH_FAILED

    def check_auth_password(self, username: str, password: str) -> int:
        self.tried.append("password")
        if password == PASSWORD:
            return paramiko.common.AUTH_SUCCESSFUL
        return paramiko.common.AUTH_FAILED

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.tried.append(f"publickey {key.get_name()}")
        if self._second_factor:
            return paramiko.common.AUTH_PARTIALLY_SUCCESSFUL
        return paramiko.common.AUTH_SUCCESSFUL

    def check_auth_interactive(
        self, username: str, submethods: str
    ) -> int | paramiko.server.InteractiveQuery:
        self.tried.append("keyboard-interactive")
        return paramiko.common.AUTH_FAILED


@pytest.fixture(scope="module")
def keys() -> list[paramiko.PKey]:
    """Two host keys of different kinds, and another one of the first kind."""
    return [
        paramiko.ECDSAKey.generate(),
        paramiko.RSAKey.generate(2048),
        paramiko.ECDSAKey.generate(),
    ]


@pytest.fixture
def cleanup() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def settings(folder: Path, port: int, known: Sequence[paramiko.PKey]) -> LoginSettings:
    file = folder / "known_hosts"
    lines = [f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n" for key in known]
    file.write_text("".join(lines))
    return LoginSettings(host="127.0.0.1", port=port, known_hosts=str(file), minimum_uid=1000)


def test_the_known_key_is_accepted(
    keys: list[paramiko.PKey], tmp_path: Path, cleanup: ExitStack
) -> None:
    sshd = Sshd(keys[0], keys[1])
    cleanup.callback(sshd.close)
    for known in ([keys[0]], [keys[1]], [keys[0], keys[1]]):
        transport = open_transport(settings(tmp_path, sshd.port, known))
        cleanup.callback(transport.close)
        assert transport.is_active()
        assert not transport.is_authenticated()
        assert transport.get_remote_server_key() in known
    assert sshd.tried == []


@pytest.mark.parametrize("known", [[2], [1], [], [2, 1]], ids=str)
def test_any_other_key_is_refused_before_authentication(
    keys: list[paramiko.PKey], known: list[int], tmp_path: Path, cleanup: ExitStack
) -> None:
    sshd = Sshd(keys[0])
    cleanup.callback(sshd.close)
    login = settings(tmp_path, sshd.port, [keys[number] for number in known])
    before = Path(login.known_hosts).read_text()
    with pytest.raises(paramiko.SSHException):
        open_transport(login)
    with pytest.raises(Unavailable, match="nobody can log in"):
        PasswordCheck(login, person)("alice", PASSWORD)
    assert sshd.tried == []
    assert Path(login.known_hosts).read_text() == before


def test_a_key_of_another_port_or_host_is_refused(
    keys: list[paramiko.PKey], tmp_path: Path, cleanup: ExitStack
) -> None:
    sshd = Sshd(keys[0])
    cleanup.callback(sshd.close)
    login = settings(tmp_path, sshd.port, [])
    line = f"{keys[0].get_name()} {keys[0].get_base64()}\n"
    file = Path(login.known_hosts)
    file.write_text(f"127.0.0.1 {line}[127.0.0.2]:{sshd.port} {line}[127.0.0.1]:1 {line}")
    with pytest.raises(paramiko.SSHException):
        open_transport(login)


@pytest.mark.parametrize("text", [None, "[127.0.0.1]:{port} ecdsa-sha2-nistp256 AAAA=A\n"])
def test_unreadable_known_hosts_are_an_error(
    keys: list[paramiko.PKey], text: str | None, tmp_path: Path, cleanup: ExitStack
) -> None:
    sshd = Sshd(keys[0])
    cleanup.callback(sshd.close)
    login = settings(tmp_path, sshd.port, [])
    Path(login.known_hosts).unlink()
    if text is not None:
        Path(login.known_hosts).write_text(text.format(port=sshd.port))
    with pytest.raises((OSError, paramiko.SSHException), match="known_hosts"):
        open_transport(login)


def test_a_password_is_only_tried_as_a_password(
    keys: list[paramiko.PKey],
    tmp_path: Path,
    cleanup: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither an agent nor key files of the portal's account are used."""
    ssh = tmp_path / ".ssh"
    ssh.mkdir()
    keys[1].write_private_key_file(str(ssh / "id_rsa"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    sshd = Sshd(keys[0])
    cleanup.callback(sshd.close)
    check = PasswordCheck(settings(tmp_path, sshd.port, [keys[0]]), person)
    assert check("alice", PASSWORD)
    assert not check("alice", "wrong")
    assert sshd.tried == ["password", "password"]


def test_only_the_certificate_is_used_even_if_more_is_required(
    keys: list[paramiko.PKey], tmp_path: Path, cleanup: ExitStack
) -> None:
    """SSHClient would go on to prompt at the terminal."""
    sshd = Sshd(keys[0], second_factor=True)
    cleanup.callback(sshd.close)
    prepare_authorities(tmp_path, "portal")
    authority = CertificateAuthority(tmp_path)
    private, certificate = authority.sign_user("alice", timedelta(minutes=1), "127.0.0.1")
    key = paramiko.Ed25519Key.from_private_key(io.StringIO(private))
    key.load_certificate(certificate)
    transport = open_transport(settings(tmp_path, sshd.port, [keys[0]]))
    cleanup.callback(transport.close)
    assert transport.auth_publickey("alice", key)  # the additional method
    assert not transport.is_authenticated()
    assert [tried.split()[0] for tried in sshd.tried] == ["publickey"]


def test_a_silent_login_node_times_out(
    tmp_path: Path, keys: list[paramiko.PKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.adapters.ssh.connect.CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        login = settings(tmp_path, silent.getsockname()[1], [keys[0]])
        with pytest.raises((paramiko.SSHException, OSError, EOFError)):
            open_transport(login)


@pytest.mark.parametrize(
    ("account", "name"),
    [
        (Account("John.Doe", 2000), "John.Doe"),
        (Account("j.doe@example.org", 2000), "j.doe@example.org"),
        (Account("root", 2000), ""),
        (Account("a:b", 2000), ""),
        (Account("John.Doe", 999), ""),
        (None, ""),
    ],
)
def test_whoever_logs_in_is_known_by_the_name_that_the_login_node_has(
    keys: list[paramiko.PKey],
    account: Account | None,
    name: str,
    tmp_path: Path,
    cleanup: ExitStack,
) -> None:
    sshd = Sshd(keys[0])
    cleanup.callback(sshd.close)
    login = settings(tmp_path, sshd.port, [keys[0]])
    login = login.model_copy(update={"account_pattern": "[A-Za-z][A-Za-z.@]{0,63}"})
    check = PasswordCheck(login, lambda _user: account)
    assert check("JOHN.DOE", PASSWORD) == name
    assert check("a:b", PASSWORD) == check("root", PASSWORD) == ""
    assert sshd.tried == ["password"]
