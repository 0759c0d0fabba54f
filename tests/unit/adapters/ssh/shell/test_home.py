"""What is said of homes that are missing, closed or full, by real commands."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from portal.adapters.ssh.command import Completed
from portal.adapters.ssh.shell.home import ENTER, OR_REPORT, check_home
from portal.errors import HomeUnusable

MOUNT = 'mount -t tmpfs -o size=4k tmpfs "$HOME" && cd && head -c 1M /dev/zero > full 2>/dev/null; '


def run(home: Path, script: str, *wrapper: str) -> Completed:
    environment = {"HOME": str(home), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    argv = [*wrapper, "/bin/sh", "-c", script]
    done = subprocess.run(argv, env=environment, capture_output=True, check=False)
    return Completed(done.returncode, done.stdout, done.stderr.decode())


def said(home: Path, script: str, *wrapper: str) -> str:
    with pytest.raises(HomeUnusable) as caught:
        check_home(run(home, script, *wrapper))
    return caught.value.text


def test_a_home_is_entered(tmp_path: Path) -> None:
    done = run(tmp_path, f"{ENTER}\npwd; exit 3")
    check_home(done)
    assert done == Completed(3, f"{tmp_path}\n".encode(), "")


def test_a_home_that_cannot_be_entered(tmp_path: Path) -> None:
    begin = f"Your home directory {tmp_path}/none "
    assert (
        said(tmp_path / "none", f"{ENTER}\necho no") == f"{begin}does not exist on the login node."
    )
    (tmp_path / "none").write_text("")
    words = f"{begin}cannot be entered on the login node: Not a directory."
    assert said(tmp_path / "none", f"{ENTER}\necho no") == words


def test_a_home_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("")
    words = f"Your home directory {tmp_path} cannot be written to on the login node: mkdir: cannot"
    text = said(tmp_path, f"{ENTER}\nexport LC_ALL=C\nmkdir -p s/one {OR_REPORT}\necho no")
    assert text.startswith(words)
    assert text.endswith(": Not a directory.")


def test_a_home_that_is_full(tmp_path: Path) -> None:
    namespace = ("unshare", "--user", "--map-root-user", "--mount")
    script = f"{MOUNT}{ENTER}\nexport LC_ALL=C\necho x | cat > file {OR_REPORT}\necho no"
    words = f"Your home directory {tmp_path} is full: No space left on device. Delete something"
    assert said(tmp_path, script, *namespace).startswith(words)
