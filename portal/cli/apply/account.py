"""Runs commands as the portal's account, also if the caller is root."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import portal
from portal.config import Settings

_SECONDS = 300


@dataclass(frozen=True)
class CommandResult:
    """Exit status and output of a command."""

    status: int
    output: str


def run_as_owner(
    settings: Settings, argv: Sequence[str], env: Mapping[str, str] | None = None
) -> CommandResult:
    """Run a command as the owner of the state directory; root changes to that account."""
    variables, identity = _as_owner(settings)
    return run(argv, variables | dict(env or {}), **identity)


def start_as_owner(settings: Settings, argv: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a background command as that account; raises OSError."""
    variables, identity = _as_owner(settings)
    nothing = subprocess.DEVNULL
    return subprocess.Popen(
        argv, stdin=nothing, stdout=nothing, stderr=nothing, cwd="/", env=variables,
        umask=0o077, **identity,
    )  # fmt: skip


def _as_owner(settings: Settings) -> tuple[dict[str, str], dict[str, Any]]:
    owner = Path(settings.state.directory).stat()
    identity: dict[str, Any] = {}
    home = {}
    if os.geteuid() == 0 and owner.st_uid != 0:
        entry = pwd.getpwuid(owner.st_uid)
        groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
        identity = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups}
        home = {"HOME": entry.pw_dir, "USER": entry.pw_name}
    # The same release as this one, from any working directory.
    import_path = {"PYTHONPATH": str(Path(portal.__file__).parent.parent)}
    return os.environ | home | import_path, identity


def run(
    argv: Sequence[str], env: Mapping[str, str] | None = None, **identity: Any
) -> CommandResult:
    """Run a command in the root folder, which every account can read."""
    try:
        result = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd="/",
            env=None if env is None else dict(env),
            timeout=_SECONDS,
            check=False,
            umask=0o077,
            **identity,
        )
    except OSError as error:
        return CommandResult(127, f"{argv[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return CommandResult(124, f"{' '.join(argv)}: no end within {_SECONDS} s")
    return CommandResult(result.returncode, result.stdout.strip())


def slipway(file: Path, *words: str) -> list[str]:
    """The arguments of a command of this release."""
    return [sys.executable, "-m", "portal.cli", "--config", str(file.absolute()), *words]
