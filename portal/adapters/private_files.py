"""Files that only the portal's account reads, written atomically."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file atomically, so that a crash leaves no partial key."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
        os.fchmod(stream.fileno(), mode)  # whatever the umask is
    draft.replace(file)
