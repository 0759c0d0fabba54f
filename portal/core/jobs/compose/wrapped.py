"""Reads the user's job from the script that `slipway sbatch` submits for an image.

batch/submit/wrapped.py writes that script. It is not trusted: the job's owner can forge one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from portal.core.units import format_size

_BEGIN = re.compile(rb"9<<'SLIPWAY-[0-9a-f]{24}'[^\n]*\n(\{[^\n]*\})\n([0-9]{1,9})\n")


@dataclass(frozen=True)
class WrappedJob:
    """A job in an image, as far as the submitted script describes it."""

    script: bytes
    image: str = ""
    """The image as the owner named it."""
    shared_memory: str = ""
    mounts: list[dict[str, Any]] = field(default_factory=list)
    """Folders that others share, as in a request."""
    options: list[str] = field(default_factory=list)
    """Options of `slipway sbatch` for all other folders."""


def unwrap(text: bytes, site_folders: Collection[str] = ()) -> WrappedJob | None:
    """Parse a submitted script; None if it is not wrapped. `site_folders` are always mounted."""
    begin = _BEGIN.search(text)
    if begin is None:
        return None
    script = text[begin.end() : begin.end() + int(begin[2])]
    try:
        request = json.loads(begin[1])
        mounts, options = _folders(request["binds"], site_folders)
        shm_mb = int(request["shm_mb"])
        shared_memory = format_size(shm_mb) if shm_mb > 0 else ""
        return WrappedJob(script, str(request["name"]), shared_memory, mounts, options)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return WrappedJob(script)


def _folders(
    binds: list[list[str]], site_folders: Collection[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    mounts: list[dict[str, Any]] = []
    options: list[str] = []
    for path, mode, *owner in binds:
        read_only = mode == "ro"
        if owner:
            name = path.rpartition("/")[2]
            mounts.append({"folder": f"{owner[0]}/{name}", "read_only": read_only})
        elif path not in site_folders:
            options.append(f"--mount={path}:ro" if read_only else f"--mount={path}")
    return mounts, options
