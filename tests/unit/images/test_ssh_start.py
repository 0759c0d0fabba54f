"""What apps/ssh/start.sh writes for sshd, with programs in the place of the toolkit's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT


@pytest.mark.parametrize("mask", [0o007, 0o022, 0o027])
def test_shells_and_files_have_the_sessions_umask_and_secrets_are_private(
    tmp_path: Path, mask: int
) -> None:
    programs, run, keys = (tmp_path / name for name in ("toolkit/bin", "run/ssh", "keys"))
    for folder in (programs, run, keys):
        folder.mkdir(parents=True)
    (programs / "ssh-keygen").symlink_to(shutil.which("ssh-keygen") or "")
    (programs / "ssh-listener").write_text("#!/bin/sh\n")
    (programs / "ssh-listener").chmod(0o755)
    script = (ROOT / "apps" / "ssh" / "start.sh").read_text().replace("/opt/slipway-ssh", str(keys))
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "USER": "alice"}
    environment |= {"SLIPWAY_RUN": str(run), "SLIPWAY_TOOLKIT": str(programs.parent)}
    environment |= {"SLIPWAY_SOCKET": str(run / "socket")}
    subprocess.run(["/bin/sh", "-c", script], env=environment, umask=mask, check=True)
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
