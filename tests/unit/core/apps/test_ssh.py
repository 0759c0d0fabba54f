"""SSH commands shown to users, and parsing of keys."""

from __future__ import annotations

import shlex
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.core.apps.access import AppState, OpenApp
from portal.core.apps.catalog import AppSpec
from portal.core.apps.ssh import SshEndpoint, find_private_key, read_host_key
from portal.core.session.session import Session, State

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def host_key(tmp_path: Path) -> Path:
    """A real key pair."""
    file = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
    return file


def endpoint(details: str = "", closed: bool = False) -> SshEndpoint:
    session = Session(
        id=ID, name="otter", owner="alice", environment="python", version="3.13", cpus=1,
        memory_mb=600, state=State.RUNNING, created=NOW, submitted=NOW, token_hash="",
    )  # fmt: skip
    opened = OpenApp(ID, "ssh", "10203", AppState.READY, details=details, closed=closed)
    return SshEndpoint(
        session,
        AppSpec(name="ssh", title="SSH", kind="ssh", script="sshd"),
        opened,
        "hpc.example.org",
    )


def test_the_fingerprint_equals_that_of_ssh(host_key: Path) -> None:
    done = subprocess.run(["ssh-keygen", "-l", "-f", host_key], capture_output=True, check=True)
    key = read_host_key(host_key.with_suffix(".pub").read_text())
    assert key is not None
    assert key.fingerprint == done.stdout.decode().split()[1]


@pytest.mark.parametrize("details", ["", "ssh-ed25519", "ssh-ed25519 ???", "ssh-rsa AAAA", "x y z"])
def test_an_invalid_host_key_is_none(details: str) -> None:
    assert read_host_key(details) is None
    assert endpoint(details).known_host == ""


def test_a_private_key_is_found_in_shell_output(host_key: Path) -> None:
    key = host_key.read_text()
    assert find_private_key(f"Welcome!\n{key}") == key
    assert find_private_key(host_key.with_suffix(".pub").read_text()) is None


def test_ssh_understands_the_block_and_the_line(host_key: Path, tmp_path: Path) -> None:
    here = endpoint(host_key.with_suffix(".pub").read_text())
    (tmp_path / "config").write_text(here.config)
    argv = ["ssh", "-G", "-F", str(tmp_path / "config"), "slipway-otter"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    options = set(done.stdout.splitlines())
    alias = "slipway-0123456789abcdef"
    assert {
        "hostname hpc.example.org",
        "port 10203",
        "user alice",
        f"hostkeyalias {alias}",
    } <= options
    (tmp_path / "known_hosts").write_text(here.known_host + "\n")
    argv = ["ssh-keygen", "-F", alias, "-f", str(tmp_path / "known_hosts")]
    assert subprocess.run(argv, capture_output=True, check=True).stdout


def test_every_command_names_port_key_and_host() -> None:
    commands = dict(endpoint().commands)
    assert "$HOME\\.ssh\\id_container -o" in commands.pop("windows")
    for command in commands.values():
        words = shlex.split(" ".join(shlex.split(command)))
        assert "10203" in words, command
        assert "~/.ssh/id_container" in words, command
        assert any(word.startswith("alice@hpc.example.org") for word in words), command


def test_a_closed_endpoint_has_no_port() -> None:
    assert endpoint().port == 10203
    assert endpoint(closed=True).port is None
