"""What the portal's machine tells: room on its disk, and how long certificates are valid."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from cryptography import x509

from portal.adapters.certificates import AUTHORITIES
from portal.core.monitoring import Room

_OWN = ("server", "client")


def room_in(folder: Path) -> Room:
    """The room in a folder's file system for accounts without privileges; raises OSError."""
    found = os.statvfs(folder)
    return Room(
        free=found.f_bavail * found.f_frsize,
        total=found.f_blocks * found.f_frsize,
        free_inodes=found.f_favail,
        inodes=found.f_files,
    )


def expiries(authorities: Path, tls: str) -> dict[str, datetime]:
    """When the portal's certificates expire, by name; those that cannot be read are left out.

    `tls`: the file for browsers; "" without https. Of a chain the first to expire counts.
    """
    files = {name: authorities / f"{name}.pem" for name in (*AUTHORITIES, *_OWN)}
    if tls:
        files["browsers"] = Path(tls)
    found = {}
    for name, file in files.items():
        try:
            chain = x509.load_pem_x509_certificates(file.read_bytes())
        except (OSError, ValueError):
            continue
        found[name] = min(one.not_valid_after_utc for one in chain)
    return found
