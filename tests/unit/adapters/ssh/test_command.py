"""One command over a channel to a real shell, well-behaved or hostile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from portal.adapters.ssh import command
from portal.adapters.ssh.command import CommandTimeout, Completed, RemoteCommand, Unresponsive
from tests.support.ssh_channels import ShellChannel


class Commands:
    """Runs commands in shells."""

    def __init__(self, folder: Path) -> None:
        self._startup = folder / "bashrc"
        self._channels: list[ShellChannel] = []

    def __call__(
        self, startup: str, *argv: str, stdin: bytes = b"", seconds: float = 5, most: int = 100_000
    ) -> Completed:
        """Run a command after this start-up file."""
        self._startup.write_text(startup + "\n", encoding="utf-8")
        channel = ShellChannel(self._bash)
        self._channels.append(channel)
        return RemoteCommand(channel, most).run(argv, stdin, seconds)

    def _bash(self, command: str) -> list[str]:
        return ["/bin/bash", "-c", f'. "{self._startup}"\n{command}']

    def end(self) -> None:
        """Close all channels."""
        for channel in self._channels:
            channel.close()


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    found = Commands(tmp_path)
    yield found
    found.end()


def test_output_errors_input_and_code(commands: Commands) -> None:
    done = commands("", "sh", "-c", "cat; echo oh >&2; exit 3", stdin=b"one\ntwo")
    assert done == Completed(3, b"one\ntwo", "oh\n")
    assert commands("", "printf", "%s|", "a b", "$HOME", "'") == Completed(0, b"a b|$HOME|'|", "")


def test_a_greeting_is_separated_from_output(commands: Commands) -> None:
    greeting = "echo welcome; echo 12 >&2; printf 'no newline'"
    assert commands(greeting, "echo", "hello") == Completed(0, b"hello\n", "")


def test_start_up_files_do_not_read_the_commands_input(commands: Commands) -> None:
    done = commands("read -r -t 0.2 stolen; echo $stolen", "cat", stdin=b"secret\n")
    assert done.stdout == b"secret\n"


def test_a_line_that_a_start_up_file_reads_is_sent_again(commands: Commands) -> None:
    begun = time.monotonic()
    done = commands("read -r stolen; echo $stolen", "cat", stdin=b"secret\n")
    assert done == Completed(0, b"secret\n", "")
    assert time.monotonic() - begun < 4


def test_a_shell_that_ends_before_the_command_has_run_nothing(commands: Commands) -> None:
    """What cannot be parsed, or has not arrived as a whole, is not executed in part."""
    with pytest.raises(Unresponsive, match="ended before it began"):
        commands("exec () { command exec /bin/sh -c 'read _; read line; eval \"$line\"'; }", "true")


def test_large_output_arrives_completely(commands: Commands) -> None:
    done = commands("", "head", "-c", "3000000", "/dev/zero", most=3_000_000)
    assert len(done.stdout) == 3_000_000


def test_large_input_arrives_completely(commands: Commands) -> None:
    assert commands("", "wc", "-c", stdin=b"x" * 3_000_000).stdout.strip() == b"3000000"


@pytest.mark.parametrize(
    ("startup", "words"),
    [
        ("yes", "print too much"),
        ("yes >&2", "print too much"),
        ("while :; do printf .; sleep 0.1; done", "take too long"),
        ("sleep 60", "take too long"),
        ("cat", "take too long"),
        ("exit 0", "ended before it began"),
        ("exec cat /etc/hostname", "ended before it began"),
    ],
)
def test_unexpected_shell_output_is_reported(
    commands: Commands, startup: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "START_SECONDS", 0.7)
    begun = time.monotonic()
    with pytest.raises(Unresponsive, match=words):
        commands(startup, "echo", "hello", stdin=b"x")
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize(
    "script",
    [
        "while :; do printf .; sleep 0.1; done",
        "sleep 60",
        "yes",
        "yes >&2",
        "exec >&- 2>&-; sleep 60",
    ],
)
def test_a_command_has_a_deadline_and_a_limit(commands: Commands, script: str) -> None:
    begun = time.monotonic()
    with pytest.raises(CommandTimeout):
        commands("", "sh", "-c", script, seconds=1)
    assert time.monotonic() - begun < 2


def test_output_held_open_delays_nobody(commands: Commands) -> None:
    begun = time.monotonic()
    assert commands("sleep 30 &", "echo", "hello").stdout == b"hello\n"
    assert time.monotonic() - begun < 3


def test_nothing_is_sent_before_the_marker(commands: Commands, tmp_path: Path) -> None:
    with pytest.raises(Unresponsive):
        commands("exit 0", "touch", str(tmp_path / "made"))
    assert not (tmp_path / "made").exists()


def test_the_real_channel_has_the_used_methods() -> None:
    channel = paramiko.Channel(1)
    for name in command.Channel.__annotations__:
        assert hasattr(channel, name)
    assert isinstance(channel.status_event, threading.Event)
