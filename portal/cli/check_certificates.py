"""Validity of the portal's own certificates, and unfinished rotations."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509

from portal.adapters import rotation
from portal.adapters.certificates import AUTHORITIES, RENEW
from portal.cli.findings import Finding

SOON = timedelta(days=180)
"""Remaining time at which replacing an authority is advised, since sessions can be long."""


def certificate_findings(directory: Path, now: datetime) -> Iterator[Finding]:
    """One line for each certificate, and one for a rotation that is not finished."""
    for name in AUTHORITIES:
        days = _days(directory / f"{name}.pem", now)
        advice = "" if days > SOON.days else "; replace it: slipway rotate gateways --begin"
        yield Finding(not advice, f"authority {name}: {_valid(days)}{advice}")
    for name in ("server.pem", "client.pem"):
        days = _days(directory / name, now)
        renew = "; run `slipway init`, then systemctl reload slipway-proxy"
        advice = "" if days >= RENEW.days else renew
        yield Finding(not advice, f"certificate {name}: {_valid(days)}{advice}")
    if rotation.stage(directory) is not rotation.Stage.NONE:
        yield Finding(True, "a rotation is not finished: slipway rotate gateways")
    if (directory / "user_ca.next").exists():
        yield Finding(True, "a rotation is not finished: slipway rotate user")


def _days(file: Path, now: datetime) -> int:
    certificate = x509.load_pem_x509_certificates(file.read_bytes())[0]
    return (certificate.not_valid_after_utc - now).days


def _valid(days: int) -> str:
    return f"valid for {days} more days" if days >= 0 else f"expired {-days} days ago"
