"""Certificates for browsers and for callbacks: names, days, keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from portal.adapters.certificates import prepare_authorities
from portal.adapters.host_names import alternative_names
from portal.cli.checks.tls import check_browsers_tls, check_callback_certificate, covers
from portal.config import WebSettings

HOST, DOMAIN = "portal.example.org", "apps.example.net"


def pem(
    hosts: list[str], days: float = 90, begins: float = -1, other_key: bool = False
) -> tuple[str, str]:
    """A certificate for these hosts, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now + timedelta(days=begins))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(alternative_names(hosts), critical=False)
        .sign(key, hashes.SHA256())
    )
    shown = ec.generate_private_key(ec.SECP256R1()) if other_key else key
    private = shown.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


GOOD = [HOST, f"*.{DOMAIN}"]


@pytest.mark.parametrize(
    ("content", "ok", "words"),
    [
        ("".join(pem(GOOD)), True, "is valid until"),
        ("".join(pem(GOOD, days=5.5)), True, ", 5 days"),
        ("".join(pem(GOOD, days=-0.5)), False, "has expired"),
        ("".join(pem(GOOD, begins=1)), False, "is not valid yet"),
        (pem(GOOD)[0], False, "has no key"),
        (pem(GOOD)[1], False, "has no certificate"),
        ("nonsense", False, "has no certificate"),
        ("".join(pem(GOOD, other_key=True)), False, "its key is not the first certificate's"),
        ("".join(pem([HOST])), False, f"is not valid for *.{DOMAIN}: it names {HOST}"),
        ("".join(pem(["x.org"])), False, f"is not valid for {HOST} and *.{DOMAIN}"),
    ],
)
def test_the_file_for_browsers(tmp_path: Path, content: str, ok: bool, words: str) -> None:
    file = tmp_path / "tls.pem"
    file.write_text(content)
    web = WebSettings(
        public_url=f"https://{HOST}",
        apps="subdomains",
        apps_domain=DOMAIN,
        tls_certificate=str(file),
    )
    found = list(check_browsers_tls(web))
    assert words in found[0].text
    assert found[0].ok is ok


def test_a_certificate_without_https(tmp_path: Path) -> None:
    (tmp_path / "tls.pem").write_text("".join(pem(["localhost", "127.0.0.1"])))
    web = WebSettings(tls_certificate=str(tmp_path / "tls.pem"))
    found = list(check_browsers_tls(web))
    assert [one.ok for one in found] == [False, True]
    assert "make it https://" in found[0].text


@pytest.mark.parametrize(
    ("names", "host", "good"),
    [
        (["portal.example.org"], "PORTAL.example.org", True),
        (["*.example.org"], "portal.example.org", True),
        (["*.example.org"], "a.b.example.org", False),
        (["*.apps.example.org"], "*.apps.example.org", True),
        (["10.1.2.3"], "10.1.2.3", True),
        (["*.1.2.3"], "10.1.2.3", False),
        (["2001:db8::1"], "[2001:db8::1]", True),
        ([], "portal", False),
    ],
)
def test_which_names_cover_a_host(names: list[str], host: str, good: bool) -> None:
    assert covers(names, host) is good


@pytest.mark.parametrize("host", ["portal", "10.213.77.99", "2001:db8::1"])
def test_what_init_issues_fits_what_was_asked(tmp_path: Path, host: str) -> None:
    prepare_authorities(tmp_path, host)
    (one,) = check_callback_certificate(tmp_path / "server.pem", host)
    assert one.ok
    (other,) = check_callback_certificate(tmp_path / "server.pem", "10.213.77.98")
    assert f"is for {host}, not for 10.213.77.98" in other.text
    (tmp_path / "server.pem").write_text("x")
    (none,) = check_callback_certificate(tmp_path / "server.pem", host)
    assert "run `slipway init`" in none.text
