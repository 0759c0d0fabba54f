"""The embedded cluster's certificate: for this machine's names, without a key to issue others."""

from __future__ import annotations

import ipaddress
import subprocess
from pathlib import Path

from cryptography import x509

from tests.support.paths import ROOT

SCRIPT = ROOT / "cluster" / "bin" / "make-certificate"


def _make(folder: Path) -> tuple[str, str]:
    subprocess.run([SCRIPT, folder], check=True, capture_output=True)
    return (folder / "ca.crt").read_text(), (folder / "site.pem").read_text()


def _verified(folder: Path, *words: str) -> bool:
    argv = ["openssl", "verify", "-CAfile", "ca.crt", *words, "site.pem"]
    return subprocess.run(argv, cwd=folder, capture_output=True, check=False).returncode == 0


def test_it_is_for_this_machines_names(tmp_path: Path) -> None:
    _, pem = _make(tmp_path / "tls")
    certificate = x509.load_pem_x509_certificate(pem.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.DNSName)) == {
        "localhost",
        "apps.localhost",
        "*.apps.localhost",
    }
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
    for name in ("localhost", "x.apps.localhost"):
        assert _verified(tmp_path / "tls", "-purpose", "sslserver", "-verify_hostname", name)
    assert not _verified(tmp_path / "tls", "-verify_hostname", "example.org")


def test_the_ca_can_sign_nothing_else(tmp_path: Path) -> None:
    ca, pem = _make(tmp_path / "tls")
    authority = x509.load_pem_x509_certificate(ca.encode())
    limits = authority.extensions.get_extension_for_class(x509.NameConstraints)
    assert limits.critical
    assert x509.DNSName("localhost") in (limits.value.permitted_subtrees or [])
    # Its key is not stored: the only key is the site's own.
    assert {file.name for file in (tmp_path / "tls").iterdir()} == {"ca.crt", "site.pem"}
    assert pem.count("PRIVATE KEY-----") == 2
    assert (tmp_path / "tls" / "site.pem").stat().st_mode & 0o777 == 0o600


def test_it_stays_the_same_until_it_is_invalid(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    first = _make(folder)
    assert _make(folder) == first
    # As after a crash between the two files, or with half of one.
    (folder / "ca.crt").write_text(_make(tmp_path / "other")[0])
    second = _make(folder)
    assert second != first
    assert _verified(folder)
    (folder / "site.pem").write_text(second[1][:500])
    assert _make(folder) != second
    assert _verified(folder)
