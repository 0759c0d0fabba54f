"""A session's submission, with a real shell and a program in the place of sbatch."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from portal.adapters.slurm.client import Slurm
from portal.adapters.ssh.command import Completed
from portal.adapters.ssh.shell import umask
from portal.adapters.ssh.shell.script import command_script
from portal.errors import Conflict, HomeUnusable, OutcomeUnknown

SESSION = "0" * 32
NOTES = 'umask > "$HOME/umask"; env > "$HOME/env"; cat > "$HOME/script"'
CLOSED = ("unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c")


class LoginNode:
    """A transport to this machine, with a home whose .bashrc exports variables."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.home = home
        self.within: tuple[str, ...] = ()
        """What /bin/sh is run in."""
        self._environment = environment

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 0,
    ) -> Completed:
        """Run a command to its end, as /bin/sh gets it from the portal."""
        known = {"HOME": str(self.home), "SHELL": "/bin/sh"}
        known["PATH"] = f"{self.home.parent}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        done = subprocess.run(
            [*self.within, "/bin/sh"],
            input=command_script(argv, stdin, "MARK"),
            env=known | self._environment,
            cwd="/",
            capture_output=True,
            umask=0o022,
            check=False,
        )
        output, errors = done.stdout.partition(b"MARK\n")[2], done.stderr.partition(b"MARK-\n")[2]
        return Completed(done.returncode, output, errors.decode())


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoginNode:
    monkeypatch.setattr(umask, "SECONDS", 60)
    (tmp_path / "bin").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "bin" / "sbatch").write_text(f"#!/bin/sh\n{NOTES}\n")
    (tmp_path / "bin" / "sbatch").chmod(0o755)
    asked = {"SBATCH_PARTITION": "short", "SBATCH_TIMELIMIT": "3", "SLURM_CLUSTERS": "other"}
    return LoginNode(tmp_path / "home", asked | {"SLURM_CONF": "/etc/slurm/slurm.conf"})


def submit(node: LoginNode) -> None:
    with pytest.raises(OutcomeUnknown, match="its id is unknown"):  # there is no squeue
        Slurm(node, "slipway", ".slipway", 20).submit("alice", SESSION, '{"a": 1}', "#!/bin/sh\n")


def refused(node: LoginNode) -> str:
    with pytest.raises(HomeUnusable) as caught:
        Slurm(node, "slipway", ".slipway", 20).submit("alice", SESSION, "{}", "#!/bin/sh\n")
    assert isinstance(caught.value, Conflict)  # a state, not an input
    assert not (node.home / "script").exists()
    return caught.value.text


def test_variables_of_sbatch_do_not_reach_it(node: LoginNode) -> None:
    submit(node)
    lines = (node.home / "env").read_text().split("\n")
    assert [line for line in lines if line.startswith(("SBATCH_", "SLURM_"))] == [
        "SLURM_CONF=/etc/slurm/slurm.conf"
    ]
    assert (node.home / "script").read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize(("profile", "mask"), [("umask 007", "0007"), ("exit 0", "0022")])
def test_the_job_has_the_logins_umask_and_its_secrets_are_private(
    node: LoginNode, profile: str, mask: str
) -> None:
    (node.home / ".profile").write_text(f"echo Welcome\n{profile}\n")
    submit(node)
    assert (node.home / "umask").read_text() == f"{mask}\n"
    folder = node.home / ".slipway" / "sessions" / SESSION
    assert (folder / "spec.json").read_text() == '{"a": 1}\n'
    assert (folder / "spec.json").stat().st_mode & 0o777 == 0o600
    for private in (folder, folder.parent, folder.parent.parent):
        assert private.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in folder.iterdir()] == ["spec.json"]


def test_a_home_that_does_not_exist_is_named(node: LoginNode) -> None:
    node.home = node.home / "gone"
    begin = f"Your home directory {node.home} "
    assert refused(node) == f"{begin}does not exist on the login node."


def test_a_home_that_cannot_be_written_to_is_named(node: LoginNode) -> None:
    (node.home / ".slipway").write_text("a file in the way")
    text = refused(node)
    assert text.startswith(f"Your home directory {node.home} cannot be written to on the login")
    os.unlink(node.home / ".slipway")
    read_only = (
        f'mount --bind "{node.home}" "{node.home}" && mount -o remount,ro,bind "{node.home}"'
    )
    node.within = (*CLOSED, f'{read_only} && exec "$@"', "sh")
    assert refused(node).endswith(": Read-only file system.")


def test_a_home_that_is_full_is_named(node: LoginNode) -> None:
    make = f'mount -t tmpfs -o nr_inodes=4 tmpfs "{node.home}" && exec "$@"'
    node.within = (*CLOSED, make, "sh")
    begin = f"Your home directory {node.home} is full: No space left on device."
    assert refused(node).startswith(begin)
