"""The portal's certificate authorities, and the short-lived certificates that they sign.

Three authorities, one per purpose: `user_ca` signs SSH certificates with which the portal acts as a
user on the login node; `gateway_ca` signs server certificates (gateways in jobs, the callback URL);
`client_ca` signs only the portal's certificate as the gateways' client.

While an authority is being rotated (rotation.py), its file has two certificates: the signing one,
and the previous one, which is still trusted. NAME.cross.pem is a cross-certificate: the new key,
certified by the previous authority, for peers that trust only the previous one.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    SSHCertificateBuilder,
    SSHCertificateType,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from portal.adapters.host_names import alternative_names, names_of
from portal.adapters.private_files import write
from portal.adapters.user_ca import load_user_key, new_user_key, write_trust_lines
from portal.core.interfaces.systems import Certificates
from portal.errors import FieldError, InvalidRequest

Authority = tuple[ec.EllipticCurvePrivateKey, x509.Certificate]
"""The signing key and its certificate."""
YEARS = timedelta(days=3650)
GATEWAY_LIFE = timedelta(days=30)
"""Longer than any session: a gateway never renews its certificate."""
CLOCK_SKEW = timedelta(minutes=5)
RENEW = timedelta(days=30)
"""`slipway init` replaces the portal's certificates that expire within this time."""
AUTHORITIES = {"gateway_ca": "Slipway gateways", "client_ca": "Slipway portal"}
"""File names, and the common names in the certificates."""


def prepare_authorities(directory: Path, callback_host: str) -> None:
    """Create missing keys and certificates. Idempotent."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _prepare_user_ca(directory)
    for name, title in AUTHORITIES.items():
        if not (directory / f"{name}.pem").exists():
            key, certificate = new_authority(title)
            write(directory / f"{name}.key", key)
            write(directory / f"{name}.pem", certificate, mode=0o644)
    issue_own(directory, callback_host)


def issue_own(directory: Path, callback_host: str) -> None:
    """Issue the portal's client and server certificates, unless valid ones exist. Idempotent."""
    client, server = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
    _leaf(directory / "client.pem", directory, "client_ca", "portal", [], client)
    _leaf(directory / "server.pem", directory, "gateway_ca", callback_host, [callback_host], server)


class CertificateAuthority(Certificates):
    """Signs certificates of gateways and users with the keys from prepare_authorities.

    The keys are read for each signature, so that a rotation needs no restart.
    """

    def __init__(self, directory: Path, user_key: str = "user_ca") -> None:
        self._directory = directory
        self._user_file = directory / user_key
        load_authority(directory, "gateway_ca")  # detects a missing key at the start
        load_user_key(self._user_file)

    def sign_gateway(self, session: str, request_pem: str) -> str:
        """Sign a gateway's CSR; returns PEM, raises InvalidRequest for an invalid CSR.

        Only the public key is taken from the request, never its names.
        """
        try:
            request = x509.load_pem_x509_csr(request_pem.encode())
            valid = request.is_signature_valid
        except (ValueError, UnicodeEncodeError):
            valid = False
        if not valid:
            raise InvalidRequest([FieldError("csr", "this is not a certificate request")])
        authority = load_authority(self._directory, "gateway_ca")
        certificate = _sign(
            authority,
            request.public_key(),  # type: ignore[arg-type]  # DH keys cannot sign a request
            session,
            [f"*.{session}.slipway"],
            ExtendedKeyUsageOID.SERVER_AUTH,
            GATEWAY_LIFE,
        )
        return (_pem(certificate) + _cross(self._directory, "gateway_ca", authority)).decode()

    def issue_gateway(self, id: str) -> str:
        key = ec.generate_private_key(ec.SECP256R1())
        names, usage = [f"*.{id}.slipway"], ExtendedKeyUsageOID.SERVER_AUTH
        authority = load_authority(self._directory, "gateway_ca")
        signed = _sign(authority, key.public_key(), id, names, usage, GATEWAY_LIFE)
        cross = _cross(self._directory, "gateway_ca", authority)
        return (_pem_key(key) + _pem(signed) + cross).decode()

    def client_ca(self) -> str:
        return (self._directory / "client_ca.pem").read_text(encoding="ascii")

    def server_ca(self) -> str:
        return (self._directory / "gateway_ca.pem").read_text(encoding="ascii")

    def sign_user(
        self, user: str, life: timedelta, source: str, skew: timedelta = CLOCK_SKEW
    ) -> tuple[str, str]:
        """Create an SSH key for one user: (private key, certificate), both in OpenSSH format.

        The certificate is valid for one principal, from one address, without any forwarding, from
        `skew` before now until `life` after now.
        """
        key, user_key = ed25519.Ed25519PrivateKey.generate(), load_user_key(self._user_file)
        now = datetime.now(UTC)
        builder = (
            SSHCertificateBuilder()
            .public_key(key.public_key())
            .serial(secrets.randbits(63))
            .type(SSHCertificateType.USER)
            .key_id(f"slipway:{user}".encode())
            .valid_principals([user.encode()])
            .valid_after((now - skew).timestamp())
            .valid_before((now + life).timestamp())
            .add_critical_option(b"source-address", source.encode())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
        return private.decode(), builder.sign(user_key).public_bytes().decode()


def _prepare_user_ca(directory: Path) -> None:
    if not (directory / "user_ca").exists():
        write(directory / "user_ca", new_user_key())
    write_trust_lines(directory)


def new_authority(title: str, key: ec.EllipticCurvePrivateKey | None = None) -> tuple[bytes, bytes]:
    """Create an authority; returns key and certificate as PEM. Without `key`, a key is created."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])
    return _pem_key(key), _pem(_certify(key, subject, key.public_key(), YEARS))


def certify_next(previous: Authority, key: ec.EllipticCurvePublicKey) -> bytes:
    """Cross-certify the next authority's key by the previous authority; returns PEM.

    Subject and issuer have the same name, so that the path length of 0 is not exceeded.
    """
    remaining = previous[1].not_valid_after_utc - datetime.now(UTC)
    life = max(remaining, timedelta(minutes=1))
    return _pem(_certify(previous[0], previous[1].subject, key, life))


def _certify(
    signer: ec.EllipticCurvePrivateKey,
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    life: timedelta,
) -> x509.Certificate:
    """Sign the certificate of an authority with this key."""
    certificate = (
        _certificate(subject, subject, key, life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )
    if signer.public_key() != key:
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        certificate = certificate.add_extension(issuer, critical=False)
    return certificate.sign(signer, hashes.SHA256())


def load_authority(directory: Path, name: str) -> Authority:
    """Load the signing authority: the first certificate of its file, and its key."""
    certificate = x509.load_pem_x509_certificates((directory / f"{name}.pem").read_bytes())[0]
    for key in load_keys(directory / f"{name}.key"):
        if key.public_key() == certificate.public_key():
            return key, certificate
    raise ValueError(f"{directory}/{name}.key has no key of the certificate in {name}.pem")


def load_keys(file: Path) -> list[ec.EllipticCurvePrivateKey]:
    """Load all keys of a file, the newest first."""
    end = b"-----END PRIVATE KEY-----"
    keys = []
    for part in file.read_bytes().split(end)[:-1]:
        key = serialization.load_pem_private_key(part + end, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)  # noqa: S101  # we wrote it ourselves
        keys.append(key)
    return keys


def _cross(directory: Path, name: str, authority: Authority) -> bytes:
    """The cross-certificate of an authority that is being rotated; else b""."""
    try:
        pem = (directory / f"{name}.cross.pem").read_bytes()
    except FileNotFoundError:
        return b""
    key = x509.load_pem_x509_certificate(pem).public_key()
    return pem if key == authority[0].public_key() else b""


def _leaf(
    file: Path,
    directory: Path,
    ca: str,
    name: str,
    hosts: Sequence[str],
    usage: x509.ObjectIdentifier,
) -> None:
    """Write key and certificate to one file, as HAProxy expects them."""
    authority = load_authority(directory, ca)
    cross = _cross(directory, ca, authority)
    if file.exists() and _fits(file.read_bytes(), authority[1], cross, hosts):
        return
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _sign(authority, key.public_key(), name, hosts, usage, YEARS)
    write(file, _pem_key(key) + _pem(certificate) + cross)


def _fits(pem: bytes, ca: x509.Certificate, cross: bytes, hosts: Sequence[str]) -> bool:
    """Whether one of the portal's certificates needs no replacement."""
    chain = x509.load_pem_x509_certificates(pem)
    try:
        chain[0].verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    fresh = chain[0].not_valid_after_utc - datetime.now(UTC) > RENEW
    return fresh and names_of(chain[0]) == list(hosts) and b"".join(map(_pem, chain[1:])) == cross


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


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _pem_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
