"""Rotating authorities: nobody is cut off between the steps, and interrupted steps are repeated."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from portal.adapters import certificates, private_files, rotation, user_ca
from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.client_tls import ClientTls, context_after_rotation
from portal.adapters.rotation import (
    Stage,
    begin_gateways,
    begin_user,
    begun_at,
    finish_gateways,
    finish_user,
    stage,
)
from tests.support.certificates import SESSION, handshake, signing_request

HOST = "portal.example.org"
NAME = f"control.{SESSION}.slipway"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A folder with all CAs."""
    prepare_authorities(tmp_path / "ca", HOST)
    return tmp_path / "ca"


class Job:
    """What a session's job knows since it was submitted."""

    def __init__(self, directory: Path, folder: Path) -> None:
        folder.mkdir()
        self._folder, self._directory = folder, directory
        self._request = signing_request(folder / "key")
        self.renew()

    def renew(self) -> None:
        """Take over what the portal tells now."""
        authority = CertificateAuthority(self._directory)
        self._client_ca, self._callback_ca = authority.client_ca(), authority.server_ca()
        signed = authority.sign_gateway(SESSION, self._request)
        (self._folder / "gateway.pem").write_text(signed)

    def gateway(self) -> ssl.SSLContext:
        """Its gateway."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "gateway.pem", self._folder / "key")
        context.load_verify_locations(cadata=self._client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def is_served(self) -> None:
        """The portal reaches it, and it reaches the portal; raises the error of TLS."""
        handshake(self.gateway(), ClientTls(self._directory).context(), NAME)
        runner = ssl.create_default_context(cadata=self._callback_ca)
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(self._directory / "server.pem")
        handshake(server, runner, HOST)


def test_no_job_is_cut_off_between_the_steps(directory: Path, tmp_path: Path) -> None:
    before = Job(directory, tmp_path / "before")
    tls = ClientTls(directory)
    assert stage(directory) is Stage.NONE
    begin_gateways(directory, HOST)
    assert stage(directory) is Stage.BEGUN
    assert timedelta(0) <= datetime.now(UTC) - begun_at(directory) < timedelta(seconds=30)
    between = Job(directory, tmp_path / "between")
    before.is_served()
    between.is_served()
    handshake(before.gateway(), tls.context(), NAME)  # of a process that ran already
    handshake(between.gateway(), context_after_rotation(directory), NAME)
    with pytest.raises(OSError, match=r"(?i)verify|alert|reset|eof"):
        handshake(before.gateway(), context_after_rotation(directory), NAME)
    before.renew()
    handshake(before.gateway(), context_after_rotation(directory), NAME)
    finish_gateways(directory, HOST)
    assert stage(directory) is Stage.NONE
    before.is_served()
    between.is_served()
    Job(directory, tmp_path / "after").is_served()


def test_what_loaded_its_files_before_the_step_goes_on_after_it(
    directory: Path, tmp_path: Path
) -> None:
    """HAProxy reads them when it is reloaded: until then new gateways convince it all the same."""
    proxy = ssl.create_default_context(cafile=str(directory / "gateway_ca.pem"))
    proxy.load_cert_chain(directory / "client.pem")
    begin_gateways(directory, HOST)
    handshake(Job(directory, tmp_path / "between").gateway(), proxy, NAME)


def test_after_the_last_step_the_earlier_authority_convinces_nobody(
    directory: Path, tmp_path: Path
) -> None:
    before = Job(directory, tmp_path / "before")
    proxy = ssl.create_default_context(cafile=str(directory / "gateway_ca.pem"))
    proxy.load_cert_chain(directory / "client.pem")
    begin_gateways(directory, HOST)
    finish_gateways(directory, HOST)
    with pytest.raises(OSError, match=r"(?i)verify|alert|reset|eof"):
        handshake(before.gateway(), ClientTls(directory).context(), NAME)
    after = Job(directory, tmp_path / "after")
    with pytest.raises(OSError, match=r"(?i)verify|alert|reset|eof"):
        handshake(after.gateway(), proxy, NAME)
    assert not list(directory.glob("*.cross.pem"))
    assert (directory / "gateway_ca.key").read_text().count("BEGIN") == 1


def test_both_steps_can_be_repeated(directory: Path) -> None:
    begin_gateways(directory, HOST)
    first = {file.name: file.read_bytes() for file in directory.iterdir()}
    begin_gateways(directory, HOST)
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == first
    finish_gateways(directory, HOST)
    first = {file.name: file.read_bytes() for file in directory.iterdir()}
    finish_gateways(directory, HOST)
    prepare_authorities(directory, HOST)
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == first


class Killed(BaseException):
    """The process ends here."""


def kill_at(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """End the process before the write of this number."""
    real, left = private_files.write, [count]

    def write(file: Path, content: bytes, mode: int = 0o600) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        real(file, content, mode)

    for module in (rotation, certificates, user_ca):
        monkeypatch.setattr(module, "write", write)


@pytest.mark.parametrize("step", [begin_gateways, finish_gateways])
@pytest.mark.parametrize("count", range(8))
def test_a_step_killed_at_any_write_cuts_nobody_off_and_is_repeated(
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: Callable[[Path, str], None],
    count: int,
) -> None:
    before = Job(directory, tmp_path / "before")
    if step is finish_gateways:
        begin_gateways(directory, HOST)
        before.renew()
    with monkeypatch.context() as patch:
        kill_at(patch, count)
        with suppress(Killed):
            step(directory, HOST)
    before.is_served()
    Job(directory, tmp_path / "meanwhile").is_served()
    if stage(directory) is not Stage.NONE:
        assert stage(directory) in (
            (Stage.BEGINNING, Stage.BEGUN)
            if step is begin_gateways
            else (Stage.BEGUN, Stage.FINISHING)
        )
    step(directory, HOST)
    before.is_served()
    wanted = Stage.BEGUN if step is begin_gateways else Stage.NONE
    assert stage(directory) is wanted
    Job(directory, tmp_path / "after").is_served()


def test_the_users_authority_signs_only_after_the_second_step(directory: Path) -> None:
    lines = (directory / "user_ca.pub").read_text().splitlines()
    line = begin_user(directory)
    assert line.split()[2] == "slipway"
    assert line.split()[3] == f"{datetime.now(UTC):%Y-%m-%d}"
    assert line.split()[4] == os.uname().nodename
    assert (directory / "user_ca.pub").read_text().splitlines() == [*lines, line]
    before = (directory / "user_ca").read_bytes()
    assert begin_user(directory) == line
    assert (directory / "user_ca").read_bytes() == before
    assert finish_user(directory) == lines[0]
    assert (directory / "user_ca").read_bytes() != before
    assert (directory / "user_ca.pub").read_text().splitlines() == [line]
    assert not (directory / "user_ca.next").exists()


def test_comments_of_known_lines_are_kept(directory: Path) -> None:
    trusted = directory / "user_ca.pub"
    key = " ".join(trusted.read_text().split()[:2])
    trusted.write_text(f"{key} slipway\n")  # as of an earlier release
    prepare_authorities(directory, HOST)
    assert trusted.read_text() == f"{key} slipway\n"


def test_one_command_at_a_time(directory: Path) -> None:
    with (
        rotation.only_one(directory),
        pytest.raises(BlockingIOError),
        rotation.only_one(directory),
    ):
        pass


def test_certificates_of_the_portal_follow_its_name_and_their_expiry(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: (directory / name).read_bytes() for name in ("client.pem", "server.pem")}
    prepare_authorities(directory, "other.example.org")
    assert (directory / "client.pem").read_bytes() == files["client.pem"]
    assert (directory / "server.pem").read_bytes() != files["server.pem"]
    monkeypatch.setattr(certificates, "RENEW", timedelta(days=4000))
    prepare_authorities(directory, "other.example.org")
    assert (directory / "client.pem").read_bytes() != files["client.pem"]
