"""Every login shell that Debian packages, by its program's name; tests/run.sh installs them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from types import MappingProxyType

PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        "bash": "bash",
        "bsd-csh": "csh",
        "busybox": "busybox",
        "dash": "dash",
        "elvish": "elvish",
        "fish": "fish",
        "ksh93": "ksh93u+m",
        "lksh": "mksh",
        "mksh": "mksh",
        "posh": "posh",
        "rc": "rc",
        "sash": "sash",
        "tcsh": "tcsh",
        "tmux": "tmux",
        "xonsh": "xonsh",
        "yash": "yash",
        "zsh": "zsh",
    }
)


def path_of(shell: str) -> str:
    """The path of a shell; fails if it is not installed."""
    path = shutil.which(shell)
    assert path is not None, f"install {PACKAGES[shell]}: no login shell is left out"
    return path


def argv_of(shell: str, command: str) -> list[str]:
    """How sshd runs a command in a login shell."""
    applet = ["sh"] if shell == "busybox" else []
    return [path_of(shell), *applet, "-c", command]
