"""What apps/ssh/start.sh writes for sshd, with stand-ins for the toolkit's programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT

START = ROOT / "apps" / "ssh" / "start.sh"
KEYGEN = '#!/bin/sh\nwhile [ "$1" != -f ]; do shift; done\n: > "$2"; echo key > "$2.pub"\n'


def start(folder: Path, mask: int = 0o077) -> Path:
    """Run the script in a session with this umask; where its files are."""
    for name in ("bin", "keys", "run/ssh"):
        (folder / name).mkdir(parents=True)
    for name, text in (("ssh-keygen", KEYGEN), ("ssh-listener", "#!/bin/sh\n")):
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    script = START.read_text().replace("keys=/opt/slipway-ssh", f"keys={folder}/keys")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "USER": "alice",
        "SLIPWAY_RUN": f"{folder}/run/ssh",
        "SLIPWAY_TOOLKIT": str(folder),
        "SLIPWAY_SOCKET": f"{folder}/sock",
        "R_LIBS_USER": "/packages of mine/R",
    }
    subprocess.run(["sh", "-c", script], env=environ, cwd=folder, umask=mask, check=True)
    return folder / "run" / "ssh"


@pytest.mark.parametrize("mask", [0o007, 0o022, 0o027])
def test_shells_and_files_have_the_sessions_umask_and_secrets_are_private(
    tmp_path: Path, mask: int
) -> None:
    run = start(tmp_path, mask)
    for secret in ("environment", "host_key", "sshd_config"):
        assert (run / secret).stat().st_mode & 0o077 == 0
    # sshd has one that forbids writing to the group, whatever that of its parent is.
    shell = [str(run / "shell"), "-c", "umask; touch new"]
    done = subprocess.run(
        shell, env={}, cwd=tmp_path, umask=0o077, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{mask:04o}\n"
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~mask
    assert f"Subsystem sftp internal-sftp -u {mask:04o}\n" in (run / "sshd_config").read_text()


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """The user's shell for sshd."""
    return start(tmp_path) / "shell"


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
