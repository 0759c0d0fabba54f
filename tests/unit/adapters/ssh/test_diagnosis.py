"""Why the portal cannot log in, found out on a real SSH server on loopback."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import paramiko
import pytest
from cryptography.hazmat.primitives.serialization import SSHCertificate, load_ssh_public_identity

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.ssh.diagnosis import connection_problem, fingerprint, login_problem
from portal.config import LoginSettings
from tests.support.ssh_server import Sshd, login_settings


class Choosy(Sshd):
    """A login node that lets in whoever has a certificate that it likes."""

    offset = 0.0
    """Seconds by which its clock is ahead."""

    def __init__(self, key: paramiko.PKey, admitted: str = "", methods: str = "publickey") -> None:
        self.admitted = admitted
        """"USER SOURCE" of the certificates that are accepted; "" for none."""
        self.methods = methods
        super().__init__(key)

    def get_allowed_auths(self, username: str) -> str:
        return self.methods

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        assert key.public_blob is not None
        user, source = self.admitted.split(" ") if self.admitted else ("", "-")
        blob = key.public_blob.key_blob
        now = time.time() + self.offset
        good = username == user and source.encode() in blob and _is_valid(key, now)
        return paramiko.common.AUTH_SUCCESSFUL if good else paramiko.common.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.common.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if command == b"exec date +%s":
            channel.sendall(b"%d\n" % (time.time() + self.offset))
            return True
        assert b"SSH_CONNECTION" in command
        channel.sendall(b"192.0.2.7 50000 192.0.2.1 22\n")
        return True


def _is_valid(key: paramiko.PKey, now: float) -> bool:
    assert key.public_blob is not None
    line = f"{key.public_blob.key_type} {base64.b64encode(key.public_blob.key_blob).decode()}"
    found = load_ssh_public_identity(line.encode())
    assert isinstance(found, SSHCertificate)
    return found.valid_after <= now <= found.valid_before


@pytest.fixture(scope="module")
def keys() -> tuple[paramiko.PKey, paramiko.PKey]:
    """The login node's key, and another one."""
    return paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()


@pytest.fixture
def cleanup() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    prepare_authorities(tmp_path / "ca", "portal")
    return tmp_path / "ca" / "user_ca.pub"


def start(cleanup: ExitStack, sshd: Sshd) -> Sshd:
    cleanup.callback(sshd.close)
    return sshd


def test_a_trusted_host(
    keys: tuple[paramiko.PKey, paramiko.PKey], tmp_path: Path, cleanup: ExitStack
) -> None:
    sshd = start(cleanup, Sshd(keys[0]))
    assert connection_problem(login_settings(tmp_path, sshd.port, [keys[0]])) == ""


def test_another_host_key_is_called_what_it_may_be(
    keys: tuple[paramiko.PKey, paramiko.PKey], tmp_path: Path, cleanup: ExitStack
) -> None:
    sshd = start(cleanup, Sshd(keys[0]))
    said = connection_problem(login_settings(tmp_path, sshd.port, [keys[1]]))
    assert "THE HOST KEY OF 127.0.0.1 DIFFERS" in said
    assert fingerprint(keys[0]) in said and fingerprint(keys[1]) in said
    assert "somebody stands between" in said
    # The file has only keys of another kind.
    other = paramiko.RSAKey.generate(2048)
    said = connection_problem(login_settings(tmp_path, sshd.port, [other]))
    assert "DIFFERS" in said and fingerprint(other) in said


def test_a_host_that_the_file_does_not_have(
    keys: tuple[paramiko.PKey, paramiko.PKey], tmp_path: Path, cleanup: ExitStack
) -> None:
    sshd = start(cleanup, Sshd(keys[0]))
    said = connection_problem(login_settings(tmp_path, sshd.port, []))
    assert f"has no key for [127.0.0.1]:{sshd.port}" in said
    assert fingerprint(keys[0]) in said
    assert "DIFFERS" not in said


def test_a_line_that_is_no_key(tmp_path: Path) -> None:
    login = login_settings(tmp_path, 1, [])
    Path(login.known_hosts).write_text("login ssh-ed25519 AAAA=A\n")
    assert "a line that is not a host key" in connection_problem(login)


@pytest.mark.parametrize(
    ("admitted", "methods", "others", "words"),
    [
        ("slipway 127.0.0.1", "publickey", [], ""),
        ("", "publickey", ["admin"], "TrustedUserCAKeys must name a file"),
        ("", "password", [], "offers password only: set PubkeyAuthentication yes"),
        ("slipway 0.0.0.0/0", "publickey", [], 'set login.source_address = "192.0.2.7"'),
        ("admin 0.0.0.0/0", "publickey", ["admin"], "(admin can log in), but not for login.reader"),
    ],
)
def test_each_step_of_the_log_in(
    keys: tuple[paramiko.PKey, paramiko.PKey],
    tmp_path: Path,
    cleanup: ExitStack,
    ca: Path,
    admitted: str,
    methods: str,
    others: list[str],
    words: str,
) -> None:
    sshd = start(cleanup, Choosy(keys[0], admitted, methods))
    login = login_settings(tmp_path, sshd.port, [keys[0]])
    said = login_problem(login, CertificateAuthority(ca.parent), ca, others)
    assert words in said if words else said == ""


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (3600.0, "60 minutes behind 127.0.0.1's"),
        (-3600.0, "60 minutes ahead of 127.0.0.1's"),
        (20.0, ""),
        (10 * 86400.0, "TrustedUserCAKeys"),  # two days at most are recognised
    ],
)
def test_clocks_that_differ(
    keys: tuple[paramiko.PKey, paramiko.PKey],
    tmp_path: Path,
    cleanup: ExitStack,
    ca: Path,
    offset: float,
    words: str,
) -> None:
    choosy = Choosy(keys[0], "slipway 127.0.0.1")
    choosy.offset = offset
    sshd = start(cleanup, choosy)
    login = login_settings(tmp_path, sshd.port, [keys[0]])
    said = login_problem(login, CertificateAuthority(ca.parent), ca, ["admin"])
    assert words in said if words else said == ""


def test_a_reader_with_an_invalid_name(ca: Path) -> None:
    login = LoginSettings(reader="Slip Way")
    assert "not an account name" in login_problem(login, CertificateAuthority(ca.parent), ca, [])
