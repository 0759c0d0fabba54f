"""The login shell's environment, asked of real shells in a home of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.login_shells import path_of
from tests.support.paths import ROOT

RUN = """
import os, pwd, sys
entry = list(pwd.getpwuid(os.getuid()))
entry[6] = sys.argv.pop(1)
pwd.getpwuid = lambda _: pwd.struct_passwd(entry)
sys.path.insert(0, {root!r})
from portal.node.batch import login_shell, main
login_shell.SECONDS = login_shell.UMASK_SECONDS = float(os.environ.pop("PATIENCE", "60"))
main.main()
"""
SHOW = (
    "import json, os; mask = os.umask(0); os.umask(mask); "
    "print(json.dumps([os.environb[b'PATH'].decode(), mask, "
    "{os.fsdecode(n): os.fsdecode(v) for n, v in os.environb.items()}]))"
)
PYTHON = sys.executable


def as_login(
    home: Path, shell: str, *words: str, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """`slipway as-login` of somebody with this shell."""
    argv = [PYTHON, "-c", RUN.format(root=str(ROOT)), shell, "as-login", *words]
    known = {"HOME": str(home), "PATH": "/usr/bin:/bin", "PATIENCE": "60"} | environment
    return subprocess.run(
        argv,
        env=known,
        cwd=home,
        input=b"the script",
        capture_output=True,
        umask=0o022,
        check=False,
    )


def seen(home: Path, shell: str, **environment: str) -> tuple[int, dict[str, str]]:
    """The umask and the environment of what it runs."""
    done = as_login(home, shell, PYTHON, "-c", SHOW, **environment)
    assert done.stderr == b""
    _, mask, found = json.loads(done.stdout)
    return mask, found


BASH = """\
echo "Welcome!"; read -r stolen
export FROM_PROFILE=yes ODD=$'a\\nb\\xff' SBATCH_PARTITION=short SLURM_HINT=multithread
export SLURM_MPI_TYPE=pmix SLURM_CONF=/etc/slurm/other.conf SQUEUE_FORMAT=%i
umask 007
module() { echo "modules"; }
export -f module
cd /
sleep 90 &
"""


def test_bash_has_its_functions_variables_and_umask(tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text(BASH)
    connection = {"SSH_CLIENT": "::1 1 2", "SSH_CONNECTION": "::1 1 ::1 2", "PWD": str(tmp_path)}
    mask, found = seen(tmp_path, path_of("bash"), **connection, OF_PAM="p")
    assert mask == 0o007
    assert (found["FROM_PROFILE"], found["OF_PAM"]) == ("yes", "p")
    assert found["ODD"] == "a\nb\udcff"
    assert "modules" in found["BASH_FUNC_module%%"]
    assert found["PWD"] == str(tmp_path)
    assert found["SLURM_MPI_TYPE"] == "pmix"  # for srun, in the job
    assert found["SLURM_CONF"] == "/etc/slurm/other.conf"
    gone = {"SSH_CLIENT", "SSH_CONNECTION", "SBATCH_PARTITION", "SLURM_HINT", "SQUEUE_FORMAT"}
    assert not gone & set(found)


@pytest.mark.parametrize(
    ("shell", "file", "text"),
    [
        ("bsd-csh", ".login", "setenv FROM_PROFILE yes\numask 007\n"),
        ("tcsh", ".login", "setenv FROM_PROFILE yes\numask 007\n"),
        ("fish", ".config/fish/config.fish", "set -gx FROM_PROFILE yes\numask 007\n"),
        ("zsh", ".zprofile", "export FROM_PROFILE=yes\numask 007\n"),
        ("ksh93", ".profile", "export FROM_PROFILE=yes\numask 007\n"),
        ("mksh", ".profile", "export FROM_PROFILE=yes\numask 007\n"),
        ("yash", ".yash_profile", "export FROM_PROFILE=yes\numask 007\n"),
        ("dash", ".profile", "export FROM_PROFILE=yes\numask 007\n"),
        ("rc", ".rcrc", "FROM_PROFILE=yes\numask 007\n"),
    ],
)
def test_every_login_shell_is_understood(tmp_path: Path, shell: str, file: str, text: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    mask, found = seen(tmp_path, path_of(shell))
    assert (mask, found["FROM_PROFILE"]) == (0o007, "yes")


@pytest.mark.parametrize("shell", ["sash", "elvish", "xonsh", "posh"])
def test_shells_without_login_files_answer_as_well(tmp_path: Path, shell: str) -> None:
    mask, found = seen(tmp_path, path_of(shell), OF_PAM="p")
    assert (mask, found["OF_PAM"]) == (0o022, "p")


@pytest.mark.parametrize("profile", ["sleep 90", "exit 0", "exec true"])
def test_without_an_answer_it_is_said_and_the_command_runs(tmp_path: Path, profile: str) -> None:
    (tmp_path / ".profile").write_text(f"{profile}\n")
    done = as_login(
        tmp_path,
        "/bin/sh",
        "sh",
        "-c",
        'echo "$OF_PAM$SBATCH_WAIT"; cat; exit 3',
        OF_PAM="p",
        SBATCH_WAIT="1",
        PATIENCE="1" if "sleep" in profile else "60",
    )
    assert (done.returncode, done.stdout) == (3, b"p\nthe script")
    assert done.stderr.startswith(b"slipway: note: your login shell did not answer")


def test_a_command_that_is_missing(tmp_path: Path) -> None:
    done = as_login(tmp_path, "/bin/sh", "/none/sbatch")
    assert (done.returncode, done.stderr) == (
        127,
        b"slipway: error: /none/sbatch: No such file or directory\n",
    )


def test_a_file_server_has_the_login_shells_umask(tmp_path: Path) -> None:
    (tmp_path / ".profile").write_text("umask 027\n")
    run = RUN.replace("main.main()", "login_shell.adopt_umask(); print(oct(os.umask(0)))")
    done = subprocess.run(
        [PYTHON, "-c", run.format(root=str(ROOT)), "/bin/sh"],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"0o27\n"
