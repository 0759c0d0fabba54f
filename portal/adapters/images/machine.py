"""Programs and privileges of this machine for builds."""

from __future__ import annotations

import os
import platform
import pwd
import shutil
import subprocess
from pathlib import Path

from portal.core.images.needs import PROGRAMS, Machine

_SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin"
"""Folders of debootstrap, which are often missing in the PATH of users other than root."""
_PATIENCE = 10.0


def detect_machine(
    files: tuple[Path, Path] = (Path("/etc/subuid"), Path("/etc/subgid")),
) -> Machine:
    """Detect programs and privileges."""
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = str(os.geteuid())
    path = f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM}"
    return Machine(
        programs=frozenset(name for name in PROGRAMS if shutil.which(name, path=path)),
        user=user,
        root=os.geteuid() == 0,
        all_capabilities=_all_capabilities(Path("/proc/self/status")),
        namespaces=_namespaces(),
        architecture=platform.machine(),
        ids=all(_names(file, {user, str(os.geteuid())}) for file in files),
    )


def _names(file: Path, users: set[str]) -> bool:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return any(line.partition(":")[0] in users for line in lines)


def _all_capabilities(status: Path) -> bool:
    """Whether this process has every capability that the kernel knows."""
    try:
        last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return int(lines["CapEff"], 16) == (1 << (last + 1)) - 1
    except (OSError, ValueError, KeyError):
        return False


def _namespaces() -> bool:
    """Whether a user namespace can be created; tried, since several settings can forbid it."""
    command = ["unshare", "--user", "--map-root-user", "true"]
    try:
        result = subprocess.run(command, capture_output=True, check=False, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0
