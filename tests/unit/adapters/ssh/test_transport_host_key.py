"""The login node's host key must be a known one, and a single method authenticates; over real SSH.

The server is paramiko's, in a thread.
"""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import paramiko
import pytest

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.ssh.connect import open_transport
from portal.adapters.ssh.login.passwords import PasswordCheck
from portal.core.auth.accounts import Account
from portal.errors import Unavailable
from tests.support.ssh_server import PASSWORD, Sshd, any_account, login_settings


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


def test_the_known_key_is_accepted(
    keys: list[paramiko.PKey], tmp_path: Path, cleanup: ExitStack
) -> None:
    sshd = Sshd(keys[0], keys[1])
    cleanup.callback(sshd.close)
    for known in ([keys[0]], [keys[1]], [keys[0], keys[1]]):
        transport = open_transport(login_settings(tmp_path, sshd.port, known))
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
    login = login_settings(tmp_path, sshd.port, [keys[number] for number in known])
    before = Path(login.known_hosts).read_text()
    with pytest.raises(paramiko.SSHException):
        open_transport(login)
    with pytest.raises(Unavailable, match="nobody can log in"):
        PasswordCheck(login, any_account)("alice", PASSWORD)
    assert sshd.tried == []
    assert Path(login.known_hosts).read_text() == before


def test_a_key_of_another_port_or_host_is_refused(
    keys: list[paramiko.PKey], tmp_path: Path, cleanup: ExitStack
) -> None:
    sshd = Sshd(keys[0])
    cleanup.callback(sshd.close)
    login = login_settings(tmp_path, sshd.port, [])
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
    login = login_settings(tmp_path, sshd.port, [])
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
    check = PasswordCheck(login_settings(tmp_path, sshd.port, [keys[0]]), any_account)
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
    transport = open_transport(login_settings(tmp_path, sshd.port, [keys[0]]))
    cleanup.callback(transport.close)
    assert transport.auth_publickey("alice", key)  # the additional method
    assert not transport.is_authenticated()
    assert [tried.split()[0] for tried in sshd.tried] == ["publickey"]


def test_a_silent_login_node_times_out(
    tmp_path: Path, keys: list[paramiko.PKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.adapters.ssh.connect.CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        login = login_settings(tmp_path, silent.getsockname()[1], [keys[0]])
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
    login = login_settings(tmp_path, sshd.port, [keys[0]])
    login = login.model_copy(update={"account_pattern": "[A-Za-z][A-Za-z.@]{0,63}"})
    check = PasswordCheck(login, lambda _user: account)
    assert check("JOHN.DOE", PASSWORD) == name
    assert check("a:b", PASSWORD) == check("root", PASSWORD) == ""
    assert sshd.tried == ["password"]
