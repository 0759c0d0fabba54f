"""Every operation of the portal on the login node, for accounts with every login shell."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from portal.adapters.slurm.client import Slurm
from portal.adapters.slurm.jobs import SlurmJobs
from portal.adapters.slurm.submitter import LoginNodeSubmitter
from portal.adapters.ssh import command
from portal.adapters.ssh.command import Completed, RemoteCommand
from portal.adapters.ssh.home_files import HomeFiles
from portal.core.apps.ssh_keys import read_public_key
from portal.core.jobs.actions import JobAction
from portal.core.jobs.compose.command import SubmitCommand
from portal.errors import InvalidRequest, OutcomeUnknown
from tests.support.login_shells import PACKAGES, argv_of
from tests.support.ssh_channels import ShellChannel

WORDS = (
    "a\nb\n", "!x !! !1", "'", '"', "\"'", "\\", "a\\\nb", "$HOME ${x} $(id) `id`",
    "* ? [a] {b,c} ~", "a;b|c&d<e>f(g)", "é 데이터", "caf\udce9 \udcff", " ", "",
    "-n", "#", "%s %d", "\t\r\x01\x7f",
)  # fmt: skip
"""The bytes of the surrogates are not UTF-8."""


class LoginNode:
    """A transport to this machine through a login shell, with a home of its own."""

    def __init__(self, shell: str, home: Path) -> None:
        self.home = home
        self._shell = partial(argv_of, shell)
        self._channels: list[ShellChannel] = []

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 256 * 1024,
    ) -> Completed:
        """Run a command to its end."""
        # tmux's server ends with its last client, and a client that comes at this moment fails, by
        # ssh as well: each command gets a server of its own, and none the developer's.
        sockets = self.home / str(len(self._channels))
        sockets.mkdir()
        # As sshd sets it.
        environment = {
            "HOME": str(self.home),
            "PATH": f"{self.home}/bin:/usr/bin:/bin",
            "SHELL": self._shell("")[0],
            "TMUX_TMPDIR": str(sockets),
            "USER": user,
        }
        channel = ShellChannel(self._shell, environment)
        self._channels.append(channel)
        return RemoteCommand(channel, most).run(argv, stdin, seconds + 40)

    def program(self, name: str, text: str) -> Path:
        """Put a shell script into its PATH."""
        folder = self.home / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
        return folder / name

    def close(self) -> None:
        """Close all channels."""
        for channel in self._channels:
            channel.close()


@pytest.fixture(params=sorted(PACKAGES))
def node(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LoginNode]:
    monkeypatch.setattr(command, "START_SECONDS", 50.0)  # xonsh on a busy machine
    login_node = LoginNode(request.param, tmp_path)
    yield login_node
    login_node.close()


def test_words_input_and_code_pass_byte_for_byte(node: LoginNode) -> None:
    every = bytes(range(256)) + b"\n\n"
    script = 'printf "%s\\0" "$@"; cat; echo oh >&2; exit 7'
    done = node.run("alice", ["/bin/sh", "-c", script, "sh", *WORDS], every)
    words = b"".join(os.fsencode(word) + b"\0" for word in WORDS)
    assert done == Completed(7, words + every, "oh\n")


def test_folders_and_logs(node: LoginNode) -> None:
    files = HomeFiles(node, ".slipway", "storage")
    made = files.make_folder("alice", "it's")
    assert files.folders("alice")[1:] == [made]
    assert files.missing("alice", ["it's", "b\nc"]) == {"b\nc"}
    with pytest.raises(InvalidRequest, match="already have"):
        files.make_folder("alice", "it's")
    (node.home / ".slipway" / "logs").mkdir(parents=True)
    (node.home / ".slipway" / "logs" / "one.log").write_bytes(b"a\nb!\n")
    assert files.read_log("alice", "one", 2, 100) == b"b!\n"
    assert files.log_size("alice", "one") == 5
    assert files.read_file("alice", f"{node.home}/.slipway/logs/one.log", None, 3).data == b"b!\n"
    assert files.image_files("alice", [str(node.home)]) == []
    (node.home / ".slipway" / "sessions" / "one").mkdir(parents=True)
    files.remove_session("alice", "one")
    assert not (node.home / ".slipway" / "sessions" / "one").exists()


def test_ssh_keys(node: LoginNode) -> None:
    files = HomeFiles(node, ".slipway", "storage")
    assert "PRIVATE KEY" in files.container_key("alice")
    line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFMVzBnv6ZMm8BpxbFvIOFCYSD4x2bw0bLUYUmkyRxQa it's !"
    key = read_public_key(line)
    files.add_public_key("alice", key)
    assert files.public_keys("alice") == [key]
    files.remove_public_key("alice", key)
    assert files.public_keys("alice") == []


def test_a_session_is_submitted(node: LoginNode) -> None:
    node.program("sbatch", 'cat > "$HOME/script"; umask > "$HOME/umask"; exit 0')
    script = "#!/bin/bash\n#SBATCH --comment=it's!\necho '!' $x\n"
    with pytest.raises(OutcomeUnknown, match="id is unknown"):  # there is no squeue
        Slurm(node, "slipway", ".slipway", 20).submit("alice", "0" * 32, '{"a": "!\\n"}', script)
    assert (node.home / "script").read_text() == script
    spec = node.home / ".slipway" / "sessions" / ("0" * 32) / "spec.json"
    assert spec.read_text() == '{"a": "!\\n"}\n'
    assert (node.home / "umask").read_text() == "0022\n"


def test_a_job_is_submitted_and_acted_on(node: LoginNode) -> None:
    as_login = '[ "$1" != as-login ] || { shift; exec "$@"; }'
    notes = f'{as_login}\nprintf "%s\\0" "$@" > "$HOME/words"; cat > "$HOME/script"; echo 77'
    program = node.program("slipway", notes)
    submitter = LoginNodeSubmitter(node, str(program), 20)
    assert submitter.submit("alice", SubmitCommand(WORDS, "#!/bin/sh\n!\n'\n")) == "77"
    words = (node.home / "words").read_bytes().split(b"\0")[:-1]
    assert words == [b"sbatch", b"--parsable", *map(os.fsencode, WORDS)]
    assert (node.home / "script").read_text() == "#!/bin/sh\n!\n'\n"
    assert submitter.read_script("alice", "~/script") == b"#!/bin/sh\n!\n'\n"
    node.program("scontrol", '[ "$2" != 2 ] || { echo "Access denied" >&2; exit 1; }')
    acted = SlurmJobs(node, "slipway", 20).act("alice", JobAction.HOLD, ["1", "2", "3_4"])
    assert acted == {"1": "", "2": "Access denied", "3_4": ""}
