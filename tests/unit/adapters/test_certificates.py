"""Three CAs, none of which can replace another."""

from __future__ import annotations

import ssl
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.errors import InvalidRequest
from tests.support.certificates import SESSION, handshake, signing_request


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A folder with all CAs."""
    prepare_authorities(tmp_path / "ca", "portal.example.org")
    return tmp_path / "ca"


def gateway(directory: Path, tmp_path: Path) -> ssl.SSLContext:
    """A gateway of SESSION, as the runner sets it up."""
    key = tmp_path / "gateway.key"
    certificate = tmp_path / "gateway.pem"
    authority = CertificateAuthority(directory)
    certificate.write_text(authority.sign_gateway(SESSION, signing_request(key)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(cadata=authority.client_ca())
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def client(directory: Path, chain: Path, key: Path | None = None) -> ssl.SSLContext:
    """A client that connects to a gateway with a certificate."""
    context = ssl.create_default_context(cafile=str(directory / "gateway_ca.pem"))
    context.load_cert_chain(chain, key)
    return context


def test_the_portal_connects_by_the_sessions_names_only(directory: Path, tmp_path: Path) -> None:
    server = gateway(directory, tmp_path)
    portal = client(directory, directory / "client.pem")
    handshake(server, portal, f"control.{SESSION}.slipway")
    with pytest.raises(ssl.SSLError):
        handshake(server, portal, f"control.{'b' * 32}.slipway")


def test_a_sessions_own_certificate_opens_no_gateway(directory: Path, tmp_path: Path) -> None:
    server = gateway(directory, tmp_path)
    thief = client(directory, tmp_path / "gateway.pem", tmp_path / "gateway.key")
    with pytest.raises(OSError, match=r".*"):
        handshake(server, thief, f"control.{SESSION}.slipway")


def test_the_name_in_the_request_is_ignored(directory: Path, tmp_path: Path) -> None:
    signed = CertificateAuthority(directory).sign_gateway(
        SESSION, signing_request(tmp_path / "key", name="portal.example.org")
    )
    certificate = x509.load_pem_x509_certificate(signed.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [f"*.{SESSION}.slipway"]


@pytest.mark.parametrize(
    "pem", ["", "nonsense", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n", "é"]
)
def test_a_bad_request_is_named(directory: Path, pem: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        CertificateAuthority(directory).sign_gateway(SESSION, pem)
    assert caught.value.errors[0].field == "csr"


def test_a_second_prepare_keeps_everything(directory: Path) -> None:
    before = {file.name: file.read_bytes() for file in directory.iterdir()}
    prepare_authorities(directory, "portal.example.org")
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == before


def test_private_keys_are_readable_by_their_owner_only(directory: Path) -> None:
    for file in directory.iterdir():
        public = file.name in ("user_ca.pub", "gateway_ca.pem", "client_ca.pem")
        assert file.stat().st_mode & 0o777 == (0o644 if public else 0o600)


def test_a_users_certificate_is_for_one_user_one_address_a_few_minutes(
    directory: Path, tmp_path: Path
) -> None:
    _private, certificate = CertificateAuthority(directory).sign_user(
        "alice", timedelta(minutes=5), "192.0.2.7"
    )
    file = tmp_path / "cert.pub"
    file.write_text(certificate)
    shown = subprocess.run(
        ["ssh-keygen", "-L", "-f", str(file)], capture_output=True, text=True, check=True
    ).stdout
    assert "source-address 192.0.2.7" in shown
    principals = shown.partition("Principals:")[2].partition("Critical")[0].split()
    assert principals == ["alice"]
    assert "permit-" not in shown
