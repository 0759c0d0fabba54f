"""The administrator's settings on the nodes, written by `slipway render gpu`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from portal.node.common.fgpu import CONTEXT_MB, MIB, GpuKind, kind_from_json
from portal.node.gpu import untrusted

FILE = Path("/etc/slipway/gpu.json")


class SettingsError(Exception):
    """The settings are invalid; the text says why."""


@dataclass(frozen=True)
class Settings:
    """The site's kinds of GPUs."""

    kinds: tuple[GpuKind, ...]
    margin: int
    """Bytes that each of a job's processes may hold beyond the slice."""
    context: int
    """Bytes that are kept free for the CUDA context of each session."""


def load(file: Path = FILE) -> Settings:
    """Read the settings; raises SettingsError."""
    try:
        data = json.loads(untrusted.read(file))
        return Settings(
            tuple(kind_from_json(kind) for kind in data["kinds"]),
            int(data["margin_mb"]) * MIB,
            int(data.get("context_mb", CONTEXT_MB)) * MIB,  # files of earlier versions lack it
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{file}: {error!r}") from error
