"""Replaces the portal's authorities in two steps, so that no running session is cut off.

Gateways: after the first step new authorities sign, while the earlier ones remain trusted; runners
get both by their heartbeats (services/session/runner_calls.py). The second step drops the earlier
ones. Users: the first step creates a key that the login node has to trust; the second signs with
it. Every file is replaced atomically, and an interrupted step is repeated.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from portal.adapters.certificates import (
    AUTHORITIES,
    CLOCK_SKEW,
    certify_next,
    issue_own,
    load_authority,
    load_keys,
    new_authority,
)
from portal.adapters.private_files import write
from portal.adapters.user_ca import new_user_key, trust_line, write_trust_lines


class Stage(Enum):
    """The progress of the rotation of the gateways' authorities."""

    NONE = 0
    BEGINNING = 1
    """The first step was interrupted."""
    BEGUN = 2
    FINISHING = 3
    """The second step was interrupted."""


def certificates(directory: Path, name: str) -> list[x509.Certificate]:
    """The certificates of an authority: the signing one, and the previous one while trusted."""
    return x509.load_pem_x509_certificates((directory / f"{name}.pem").read_bytes())


def stage(directory: Path) -> Stage:
    """The stage of the rotation; both steps change the authorities in the order of AUTHORITIES."""
    double = [len(certificates(directory, name)) > 1 for name in AUTHORITIES]
    if all(double):
        return Stage.BEGUN
    if any(double):
        return Stage.BEGINNING if double[0] else Stage.FINISHING
    has_cross = any(_cross_file(directory, name).exists() for name in AUTHORITIES)
    if not has_cross:
        return Stage.NONE
    ready = all(_next_key(directory, name) is None for name in AUTHORITIES)
    return Stage.FINISHING if ready else Stage.BEGINNING


def begun_at(directory: Path) -> datetime:
    """The time from which all new authorities sign; earlier sessions trust only the old ones."""
    return max(
        certificates(directory, name)[0].not_valid_before_utc + CLOCK_SKEW for name in AUTHORITIES
    )


def begin_gateways(directory: Path, callback_host: str) -> None:
    """Create new signing authorities, and keep the earlier ones trusted. Idempotent."""
    for name, title in AUTHORITIES.items():
        if len(certificates(directory, name)) == 1:
            _begin(directory, name, title)
    issue_own(directory, callback_host)


def _begin(directory: Path, name: str, title: str) -> None:
    # In this order, the key of the first certificate exists after an interruption at any line.
    previous = load_authority(directory, name)
    key = _next_key(directory, name)
    if key is None:
        key_pem, _certificate = new_authority(title)
        write(directory / f"{name}.key", key_pem + (directory / f"{name}.key").read_bytes())
        key = load_keys(directory / f"{name}.key")[0]
    _pem, certificate = new_authority(title, key)
    write(_cross_file(directory, name), certify_next(previous, key.public_key()), mode=0o644)
    earlier = previous[1].public_bytes(serialization.Encoding.PEM)
    write(directory / f"{name}.pem", certificate + earlier, mode=0o644)


def _next_key(directory: Path, name: str) -> ec.EllipticCurvePrivateKey | None:
    """The key that an interrupted first step has created; None without one."""
    newest = load_keys(directory / f"{name}.key")[0]
    signing = certificates(directory, name)[0].public_key()
    return None if newest.public_key() == signing else newest


def finish_gateways(directory: Path, callback_host: str) -> None:
    """Drop the earlier authorities and their keys. Idempotent."""
    for name in AUTHORITIES:
        key, certificate = load_authority(directory, name)
        encoding = serialization.Encoding.PEM
        write(directory / f"{name}.pem", certificate.public_bytes(encoding), mode=0o644)
        private, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        write(directory / f"{name}.key", key.private_bytes(encoding, private, none))
    for name in AUTHORITIES:
        _cross_file(directory, name).unlink(missing_ok=True)
    issue_own(directory, callback_host)


def _cross_file(directory: Path, name: str) -> Path:
    return directory / f"{name}.cross.pem"


def begin_user(directory: Path) -> str:
    """Create the next key for users' certificates; returns its trust line. Idempotent."""
    file = directory / "user_ca.next"
    if not file.exists():
        write(file, new_user_key())
    write_trust_lines(directory)
    return trust_line(directory, file.name)


def finish_user(directory: Path) -> str:
    """Make the next key the signing key; returns the trust line of the earlier one."""
    earlier = trust_line(directory, "user_ca")
    (directory / "user_ca.next").replace(directory / "user_ca")
    write_trust_lines(directory)
    return earlier


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Hold the authorities' lock; raises BlockingIOError if another command holds it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
