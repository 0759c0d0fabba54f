"""The shell that apps/ssh/start.sh writes for sshd, with stand-ins for the toolkit's programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT

START = ROOT / "apps" / "ssh" / "start.sh"
KEYGEN = '#!/bin/sh\nwhile [ "$1" != -f ]; do shift; done\n: > "$2"; echo key > "$2.pub"\n'


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """The user's shell for sshd."""
    for name in ("bin", "keys", "run/ssh"):
        (tmp_path / name).mkdir(parents=True)
    for name, text in (("ssh-keygen", KEYGEN), ("ssh-listener", "#!/bin/sh\n")):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    script = START.read_text().replace("keys=/opt/slipway-ssh", f"keys={tmp_path}/keys")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "USER": "alice",
        "SLIPWAY_RUN": f"{tmp_path}/run/ssh",
        "SLIPWAY_TOOLKIT": str(tmp_path),
        "SLIPWAY_SOCKET": f"{tmp_path}/sock",
        "R_LIBS_USER": "/packages of mine/R",
    }
    subprocess.run(["sh", "-c", script], env=environ, cwd=tmp_path, check=True)
    return tmp_path / "run" / "ssh" / "shell"


def told(shell: Path, **environ: str) -> list[str]:
    """Three variables as a command over SSH sees them."""
    command = 'printf "%s\\n" "$SSH_CONNECTION" "$SSH_CLIENT" "$R_LIBS_USER"'
    argv = [str(shell), "-c", command]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_programs_can_parse_the_addresses_of_the_connection(shell: Path) -> None:
    """Through a unix socket sshd says UNKNOWN 65535 UNKNOWN 65535."""
    unknown = {"SSH_CONNECTION": "UNKNOWN 65535 UNKNOWN 65535", "SSH_CLIENT": "UNKNOWN 65535 65535"}
    assert told(shell, **unknown)[:2] == ["127.0.0.1 65535 127.0.0.1 22", "127.0.0.1 65535 22"]
    assert told(shell, SSH_CONNECTION="192.0.2.1 50000 192.0.2.2 22")[0].startswith("192.0.2.1 ")


def test_commands_over_ssh_find_users_packages(shell: Path) -> None:
    assert told(shell)[2] == "/packages of mine/R"
