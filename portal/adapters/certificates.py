"""The portal's own certificate authorities, and the short-lived certificates that they sign.

Three authorities, one per purpose: `user_ca` signs SSH certificates with which the portal acts as a
user on the login node; `gateway_ca` signs server certificates (gateways in jobs, the callback URL);
`client_ca` signs only the portal's certificate as the gateways' client.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    SSHCertificateBuilder,
    SSHCertificateType,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from portal.adapters.host_names import alternative_names, names_of
from portal.core.interfaces.systems import Certificates
from portal.errors import FieldError, InvalidRequest

YEARS = timedelta(days=3650)
GATEWAY_LIFE = timedelta(days=30)
"""Longer than any session: a gateway never renews its certificate."""
CLOCK_SKEW = timedelta(minutes=5)


def prepare_authorities(directory: Path, callback_host: str) -> None:
    """Create the keys and certificates that are missing. Idempotent."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _prepare_user_ca(directory)
    gateway = _authority(directory, "gateway_ca", "Slipway gateways")
    client = _authority(directory, "client_ca", "Slipway portal")
    _leaf(directory / "client.pem", client, "portal", [], ExtendedKeyUsageOID.CLIENT_AUTH)
    _leaf(
        directory / "server.pem",
        gateway,
        callback_host,
        [callback_host],
        ExtendedKeyUsageOID.SERVER_AUTH,
    )


class CertificateAuthority(Certificates):
    """Signs for gateways and for users, with the keys from prepare_authorities."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._gateway = _load_authority(directory, "gateway_ca")
        key = serialization.load_ssh_private_key((directory / "user_ca").read_bytes(), None)
        assert isinstance(key, ed25519.Ed25519PrivateKey)  # noqa: S101  # we wrote it ourselves
        self._user_key = key

    def sign_gateway(self, session: str, request_pem: str) -> str:
        """Certificate (PEM) for a gateway's CSR; raises InvalidRequest for an invalid CSR.

        Only the public key is taken from the request, never its names.
        """
        try:
            request = x509.load_pem_x509_csr(request_pem.encode())
            valid = request.is_signature_valid
        except (ValueError, UnicodeEncodeError):
            valid = False
        if not valid:
            raise InvalidRequest([FieldError("csr", "this is not a certificate request")])
        certificate = _sign(
            self._gateway,
            request.public_key(),  # type: ignore[arg-type]  # DH keys cannot sign a request
            session,
            [f"*.{session}.slipway"],
            ExtendedKeyUsageOID.SERVER_AUTH,
            GATEWAY_LIFE,
        )
        return certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue_gateway(self, id: str) -> str:
        key = ec.generate_private_key(ec.SECP256R1())
        names, usage = [f"*.{id}.slipway"], ExtendedKeyUsageOID.SERVER_AUTH
        signed = _sign(self._gateway, key.public_key(), id, names, usage, GATEWAY_LIFE)
        return (_pem_key(key) + signed.public_bytes(serialization.Encoding.PEM)).decode()

    def client_ca(self) -> str:
        return (self._directory / "client_ca.pem").read_text(encoding="ascii")

    def server_ca(self) -> str:
        return (self._directory / "gateway_ca.pem").read_text(encoding="ascii")

    def sign_user(self, user: str, life: timedelta, source: str) -> tuple[str, str]:
        """A new SSH key for one user: (private key, certificate), both in OpenSSH format.

        Valid for one principal, from one address, without any forwarding.
        """
        key = ed25519.Ed25519PrivateKey.generate()
        now = datetime.now(UTC)
        builder = (
            SSHCertificateBuilder()
            .public_key(key.public_key())
            .serial(secrets.randbits(63))
            .type(SSHCertificateType.USER)
            .key_id(f"slipway:{user}".encode())
            .valid_principals([user.encode()])
            .valid_after((now - CLOCK_SKEW).timestamp())
            .valid_before((now + life).timestamp())
            .add_critical_option(b"source-address", source.encode())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
        return private.decode(), builder.sign(self._user_key).public_bytes().decode()


Authority = tuple[ec.EllipticCurvePrivateKey, x509.Certificate]


def _prepare_user_ca(directory: Path) -> None:
    file = directory / "user_ca"
    if not file.exists():
        key = ed25519.Ed25519PrivateKey.generate()
        _write(
            file,
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.OpenSSH,
                serialization.NoEncryption(),
            ),
        )
    loaded = serialization.load_ssh_private_key(file.read_bytes(), None)
    public = loaded.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    _write(directory / "user_ca.pub", public + b" slipway\n", mode=0o644)


def _authority(directory: Path, name: str, title: str) -> Authority:
    if not (directory / f"{name}.pem").exists():
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])
        certificate = (
            _certificate(subject, subject, key.public_key(), YEARS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(sign_certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        _write(directory / f"{name}.key", _pem_key(key))
        _write(
            directory / f"{name}.pem",
            certificate.public_bytes(serialization.Encoding.PEM),
            mode=0o644,
        )
    return _load_authority(directory, name)


def _load_authority(directory: Path, name: str) -> Authority:
    key = serialization.load_pem_private_key((directory / f"{name}.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)  # noqa: S101  # we wrote it ourselves
    return key, x509.load_pem_x509_certificate((directory / f"{name}.pem").read_bytes())


def _leaf(
    file: Path, authority: Authority, name: str, hosts: Sequence[str], usage: x509.ObjectIdentifier
) -> None:
    """Key and certificate in one file, as HAProxy expects them."""
    if file.exists() and _fits(file, hosts):
        return
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _sign(authority, key.public_key(), name, hosts, usage, YEARS)
    _write(file, _pem_key(key) + certificate.public_bytes(serialization.Encoding.PEM))


def _fits(file: Path, hosts: Sequence[str]) -> bool:
    """Whether an issued certificate still has the names that it is to have."""
    return names_of(x509.load_pem_x509_certificates(file.read_bytes())[0]) == list(hosts)


def _sign(
    authority: Authority,
    public_key: ec.EllipticCurvePublicKey,
    name: str,
    hosts: Sequence[str],
    usage: x509.ObjectIdentifier,
    life: timedelta,
) -> x509.Certificate:
    key, issuer = authority
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        _certificate(subject, issuer.subject, public_key, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
    )
    if hosts:
        builder = builder.add_extension(alternative_names(hosts), critical=False)
    return builder.sign(key, hashes.SHA256())


def _certificate(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, life: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file atomically: a crash must not leave a partial key."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        os.fchmod(stream.fileno(), mode)  # whatever the umask is
    draft.replace(file)
