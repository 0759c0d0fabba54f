"""The commands that create and hand out a user's SSH key, run by a real shell."""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

from portal.adapters.ssh.key_commands import (
    add_argv,
    key_argv,
    list_argv,
    make_step,
    remove_argv,
)
from portal.core.apps.ssh import find_private_key


def start(home: Path, new: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        key_argv(".slipway", new),
        env=os.environ | {"HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(home: Path, new: bool = False) -> str:
    process = start(home, new)
    key, _ = process.communicate()
    assert process.returncode == 0
    return key


def make(home: Path) -> None:
    """The command run by a launch."""
    subprocess.run(["sh", "-c", f"umask 077; {make_step('.slipway')}"], cwd=home, check=True)


def public(key: str) -> str:
    """The public half of a private key."""
    argv = ["ssh-keygen", "-y", "-f", "/dev/stdin"]
    return subprocess.run(argv, input=key, stdout=subprocess.PIPE, text=True, check=True).stdout


def accepted(home: Path) -> str:
    """The key that sessions accept; "" if there is none."""
    file = home / ".slipway" / "ssh" / "authorized_keys"
    return file.read_text() if file.exists() else ""


def old_home(home: Path) -> str:
    """A home as left by earlier versions: the key, and a copy in a session's home."""
    copies = home / ".slipway" / "sessions" / "a" / "home"
    copies.mkdir(parents=True)
    old = home / ".slipway" / "id_container"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(old)], check=True)
    (copies / "id_container").write_text(old.read_text())
    (home / ".slipway").chmod(0o755)
    return old.read_text()


def remaining_files(home: Path) -> dict[str, int]:
    """All files below the portal's folder, with their permissions."""
    top = home / ".slipway"
    found = (file for file in top.rglob("*") if file.is_file())
    return {str(file.relative_to(top)): file.stat().st_mode & 0o777 for file in found}


def test_concurrent_calls_get_the_same_key(tmp_path: Path) -> None:
    keys = {process.communicate()[0] for process in [start(tmp_path) for _ in range(6)]}
    assert len(keys) == 1
    key = keys.pop()
    assert find_private_key(key) == key
    assert (tmp_path / ".slipway" / "key" / "id_container").read_text() == key
    assert remaining_files(tmp_path) == {"key/id_container": 0o600, "ssh/authorized_keys": 0o600}
    for folder in (".slipway", ".slipway/key", ".slipway/ssh"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700
    assert accepted(tmp_path) == public(key)


def test_concurrent_renewals_leave_one_consistent_key(tmp_path: Path) -> None:
    for _ in range(3):
        processes = [start(tmp_path, new=number % 2 == 0) for number in range(6)]
        for process in processes:
            process.communicate()
        key = (tmp_path / ".slipway" / "key" / "id_container").read_text()
        assert accepted(tmp_path) == public(key)
        assert ask(tmp_path) == key


def test_no_private_key_reaches_a_session(tmp_path: Path) -> None:
    home = tmp_path / ".slipway" / "sessions" / "a" / "home"
    home.mkdir(parents=True)
    for new in (False, True):
        make(tmp_path)
        key = ask(tmp_path, new)
        assert list(home.iterdir()) == []
        assert "PRIVATE" not in accepted(tmp_path)
        assert accepted(tmp_path) == public(key)


def test_a_new_key_is_the_only_one(tmp_path: Path) -> None:
    first = ask(tmp_path)
    second = ask(tmp_path, new=True)
    assert second != first
    assert accepted(tmp_path) == public(second)
    assert ask(tmp_path) == second


def test_a_key_exposed_to_sessions_is_renewed_once(tmp_path: Path) -> None:
    old = old_home(tmp_path)
    make(tmp_path)
    assert not list(tmp_path.rglob("sessions/*/home/id_container"))
    assert accepted(tmp_path) not in ("", public(old))
    # Its owner is notified until he has downloaded the new one.
    assert "ssh/renewed" in remaining_files(tmp_path)
    key = ask(tmp_path)
    assert key != old
    assert "ssh/renewed" not in remaining_files(tmp_path)
    make(tmp_path)
    assert ask(tmp_path) == key
    assert "ssh/renewed" not in remaining_files(tmp_path)


@pytest.mark.parametrize("step", range(1, 12))
def test_a_crash_at_any_command_is_repaired_by_the_next_use(tmp_path: Path, step: int) -> None:
    old = old_home(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    count = tmp_path / "count"
    count.write_text("")
    for name in ("mkdir", "chmod", "rm", "ssh-keygen", "ln", "mv", "cat"):
        text = f"""\
            #!/bin/sh
            echo >> {count}
            [ "$(/usr/bin/wc -l < {count})" -lt {step} ] || kill -9 "$PPID"
            exec /usr/bin/env PATH=/usr/bin:/bin {name} "$@"
            """
        (programs / name).write_text(textwrap.dedent(text))
        (programs / name).chmod(0o755)
    for new in (False, True):
        count.write_text("")
        subprocess.run(
            key_argv(".slipway", new),
            env={"HOME": str(tmp_path), "PATH": f"{programs}:/usr/bin:/bin"},
            capture_output=True,
            check=False,
        )
        assert accepted(tmp_path) != public(old)
    make(tmp_path)
    key = ask(tmp_path)
    assert key != old
    assert accepted(tmp_path) == public(key)
    assert not list(tmp_path.rglob("home/id_container"))


def test_an_unwritable_home_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".slipway").write_text("a file in the way")
    process = start(tmp_path)
    assert process.communicate()[0] == ""
    assert process.returncode == 1


OWN = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFMVzBnv6ZMm8BpxbFvIOFCYSD4x2bw0bLUYUmkyRxQa me"


def shell(home: Path, argv: list[str]) -> str:
    """Run a command as the user."""
    environment = os.environ | {"HOME": str(home)}
    done = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def test_added_keys_are_accepted_beside_id_container_until_they_are_removed(
    tmp_path: Path,
) -> None:
    shell(tmp_path, add_argv(".slipway", "a" * 64, OWN))
    shell(tmp_path, add_argv(".slipway", "b" * 64, OWN.replace("me", "it's $HOME `id`")))
    shell(tmp_path, add_argv(".slipway", "a" * 64, OWN))
    first = ask(tmp_path)
    assert shell(tmp_path, list_argv(".slipway")).splitlines() == [
        OWN,
        OWN.replace("me", "it's $HOME `id`"),
    ]
    shell(tmp_path, remove_argv(".slipway", "b" * 64))
    assert accepted(tmp_path) == f"{public(first)}{OWN}\n"
    second = ask(tmp_path, new=True)
    assert accepted(tmp_path) == f"{public(second)}{OWN}\n"
    shell(tmp_path, remove_argv(".slipway", "a" * 64))
    assert accepted(tmp_path) == public(second)
    assert shell(tmp_path, list_argv(".slipway")) == ""


def test_a_launch_publishes_what_an_interrupted_change_left(tmp_path: Path) -> None:
    shell(tmp_path, add_argv(".slipway", "a" * 64, OWN))
    (tmp_path / ".slipway" / "key" / "own" / f"{'a' * 64}.pub").unlink()
    make(tmp_path)
    assert OWN not in accepted(tmp_path)
