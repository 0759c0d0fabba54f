"""Certificates for browsers (web.tls_certificate) and for runners' callbacks."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from portal.adapters.host_names import names_of
from portal.cli.findings import Finding, warn
from portal.config import Settings, WebSettings

FEW_DAYS = 21


def check_browsers_tls(web: WebSettings) -> Iterator[Finding]:
    """The certificate for https, if HAProxy ends TLS."""
    if not web.tls_certificate:
        if web.secure:
            yield warn(
                f"public_url is https, but tls_certificate is not set: HAProxy speaks plain "
                f"http on {web.listen}, which is right only behind a proxy that speaks TLS"
            )
        return
    if not web.secure:
        text = "tls_certificate is set, but public_url is http://: make it https://"
        yield Finding(False, f"web.public_url: {text}")
    file = Path(web.tls_certificate)
    try:
        data = file.read_bytes()
    except OSError as error:
        advice = "; HAProxy reads it as the portal's account" if file.exists() else ""
        yield Finding(False, f"web.tls_certificate {file}: {error.strerror}{advice}")
        return
    apps = f"*.{web.apps_domain}" if web.apps == "subdomains" else web.apps_host
    yield from _pem(file, data, [web.host, apps])


def _pem(file: Path, data: bytes, hosts: Sequence[str]) -> Iterator[Finding]:
    try:
        certificate = x509.load_pem_x509_certificates(data)[0]
    except ValueError:
        yield Finding(False, f"{file} has no certificate (PEM: chain, then key, in one file)")
        return
    try:
        key = serialization.load_pem_private_key(data, None)
    except (ValueError, TypeError):
        text = "has no key, or one with a password: append the key to the chain"
        yield Finding(False, f"{file} {text}")
        return
    if key.public_key() != certificate.public_key():
        text = (
            "its key is not the first certificate's: the server's own comes first, then the chain"
        )
        yield Finding(False, f"{file}: {text}")
        return
    missing = [host for host in hosts if not covers(names_of(certificate), host)]
    if missing:
        yield Finding(
            False,
            f"{file} is not valid for {' and '.join(missing)}: it names "
            f"{', '.join(names_of(certificate)) or 'nothing'}",
        )
    yield _days(str(file), certificate)


def covers(names: Sequence[str], host: str) -> bool:
    """Whether a certificate with these names is valid for a host; a host "*.x" needs a wildcard."""
    host = host.lower().strip("[]")
    wildcard = f"*.{host.partition('.')[2]}"
    lowered = {name.lower() for name in names}
    return host in lowered or (wildcard in lowered and not _is_address(host))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _days(subject: str, certificate: x509.Certificate) -> Finding:
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    until = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
    if left.total_seconds() < 0:
        return Finding(False, f"{subject} has expired, on {until}: renew it")
    if certificate.not_valid_before_utc > datetime.now(UTC):
        return Finding(False, f"{subject} is not valid yet: look at this machine's clock")
    text = f"{subject} is valid until {until}"
    return warn(f"{text}, {left.days} days") if left.days < FEW_DAYS else Finding(True, text)


def check_callback(settings: Settings) -> Iterator[Finding]:
    """Check the callback address: it resolves, and the portal's certificate matches."""
    parts = urlsplit(settings.sessions.callback)
    host = parts.hostname or ""
    try:
        addresses = socket.getaddrinfo(host, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        yield Finding(
            False,
            f"sessions.callback: {host} is not known to this machine's name service (DNS, "
            "/etc/hosts); every compute node needs it, an address will do",
        )
        addresses = []
    if any(
        ipaddress.ip_address(str(address[4][0]).partition("%")[0]).is_loopback
        for address in addresses
    ):
        yield warn(
            f"sessions.callback: {host} is this machine's loopback, which no other node reaches"
        )
    port = settings.web.listen_runners.rpartition(":")[2]
    if port != str(parts.port or 443):
        yield warn(
            f"sessions.callback has port {parts.port or 443}, web.listen_runners {port}: right "
            "only where something forwards the one to the other"
        )
    yield from check_callback_certificate(settings.state.ca_file("server.pem"), host)


def check_callback_certificate(file: Path, host: str) -> Iterator[Finding]:
    """Whether runners accept the certificate that `slipway init` issued."""
    try:
        certificate = x509.load_pem_x509_certificates(file.read_bytes())[0]
    except (OSError, ValueError):
        yield Finding(False, f"{file} cannot be read: run `slipway init`")
        return
    if not covers(names_of(certificate), host):
        names = ", ".join(names_of(certificate)) or "nothing"
        yield Finding(
            False,
            f"{file} is for {names}, not for {host} (sessions.callback), so no session can start: "
            "run `slipway init`, then reload slipway-proxy",
        )
        return
    yield _days(f"the certificate for callbacks ({host})", certificate)
