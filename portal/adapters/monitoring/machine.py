"""Facts about the portal's machine: free disk space and the expiry of certificates."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from cryptography import x509

from portal.adapters.certificates import AUTHORITIES
from portal.core.monitoring import Room

_PORTAL_CERTIFICATES = ("server", "client")


def room_in(folder: Path) -> Room:
    """Free space of a folder's file system for unprivileged accounts; raises OSError."""
    status = os.statvfs(folder)
    return Room(
        free=status.f_bavail * status.f_frsize,
        total=status.f_blocks * status.f_frsize,
        free_inodes=status.f_favail,
        inodes=status.f_files,
    )


def expiries(authorities: Path, tls: str) -> dict[str, datetime]:
    """Expiry of the portal's certificates by name; unreadable ones are left out.

    `tls`: the file for browsers; "" without https. For a chain, the earliest expiry counts.
    """
    files = {name: authorities / f"{name}.pem" for name in (*AUTHORITIES, *_PORTAL_CERTIFICATES)}
    if tls:
        files["browsers"] = Path(tls)
    expiry_times = {}
    for name, file in files.items():
        try:
            chain = x509.load_pem_x509_certificates(file.read_bytes())
        except (OSError, ValueError):
            continue
        expiry_times[name] = min(certificate.not_valid_after_utc for certificate in chain)
    return expiry_times
