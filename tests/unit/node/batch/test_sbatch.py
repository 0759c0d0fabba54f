"""The command as a whole, with a program in the place of Slurm's sbatch."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.node.batch.submit.wrapped import unwrap
from tests.support.paths import ROOT
from tests.unit.node.batch.conftest import site

SCRIPT = b"#!/bin/sh\necho hi\n"
SUBMITS = """#!/bin/sh
[ "$1" != --test-only ] || { echo "sbatch: error: Unable to open file" >&2; exit 1; }
printf '%s\\n' "$@" > "$0.words"
ls -l /proc/self/fd | awk '{ print $9 }' | sort -n | tr '\\n' ' ' > "$0.descriptors"
for last; do :; done
case $last in -* | "") cat ;; *) cat "$last" ;; esac > "$0.script"
echo 7
"""

READS_FIRST = """#!/bin/sh
printf '%s\\n' "$@" > "$0.words"
cat "$1" > "$0.script"
echo 7
"""


class Login:
    """A login node: the command, settings of a site, and a program named sbatch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.command = folder / "slipway"
        build = ROOT / "portal" / "node" / "batch" / "build.sh"
        environment = {**os.environ, "PYTHON": sys.executable}
        subprocess.run([build, self.command], check=True, env=environment)
        (folder / "batch.json").write_text(json.dumps(site()))
        self.environment = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "SLIPWAY_BATCH_SETTINGS": str(folder / "batch.json"),
            "LC_ALL": "C.UTF-8",
        }
        self.slurm("sbatch", SUBMITS)

    def slurm(self, name: str, text: str) -> None:
        """Put a program in the place of a command of Slurm's."""
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def start(self, *words: str | bytes, **options: Any) -> subprocess.Popen[bytes]:
        """Start the command."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [self.command, *words], env=self.environment, cwd=self.folder, **{**pipes, **options}
        )

    def run(self, *words: str | bytes, stdin: bytes | None = None) -> tuple[int, bytes, bytes]:
        """Exit code, output and errors of the command."""
        kind = subprocess.DEVNULL if stdin is None else subprocess.PIPE
        found = self.start(*words, stdin=kind)
        out, error = found.communicate(stdin, timeout=30)
        return found.returncode, out, error

    @property
    def words(self) -> list[str]:
        """The arguments that sbatch got."""
        return (self.bin / "sbatch.words").read_text().splitlines()

    @property
    def submitted(self) -> bytes:
        """The script that sbatch got."""
        return (self.bin / "sbatch.script").read_bytes()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Login:
    return Login(tmp_path_factory.mktemp("login"))


@pytest.fixture
def login(built: Login) -> Iterator[Login]:
    yield built
    built.slurm("sbatch", SUBMITS)
    for file in built.bin.glob("sbatch.*"):
        file.unlink()


def carried(text: bytes) -> bytes:
    """The person's script in a submitted one."""
    return unwrap(text[text.index(b"9<<'") :].partition(b"\n")[2])[1]


def test_without_options_of_ours_sbatch_gets_everything(login: Login) -> None:
    code, out, error = login.run("sbatch", "--mem=1G", "-", stdin=SCRIPT)
    assert (code, out, error) == (0, b"7\n", b"")
    assert login.words == ["--mem=1G", "-"]
    assert login.submitted == SCRIPT
    assert (login.bin / "sbatch.descriptors").read_text().split() == ["0", "1", "2", "3"]  # of ls


def test_a_script_from_standard_input_runs_in_the_image(login: Login) -> None:
    assert login.run("sbatch", "--image=python", "--hold", stdin=SCRIPT)[:2] == (0, b"7\n")
    assert login.words == ["--hold"]
    assert carried(login.submitted) == SCRIPT
    assert (login.bin / "sbatch.descriptors").read_text().split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
@pytest.mark.parametrize("image", [[], ["--image=python"]])
def test_standard_input_by_a_name_may_have_arguments(
    login: Login, name: str, image: list[str]
) -> None:
    login.slurm("sbatch", READS_FIRST)
    ours, theirs = socket.socketpair()  # a socket, which has no path, as from sshd
    found = login.start("sbatch", *image, name, "a b", "-x", stdin=theirs)
    theirs.close()
    ours.sendall(SCRIPT)
    ours.close()
    assert found.communicate(timeout=30) == (b"7\n", b"")
    words = login.words
    assert words[1:] == ["a b", "-x"]
    assert os.path.basename(words[0]) == os.path.basename(name)
    assert (carried(login.submitted) if image else login.submitted) == SCRIPT


def test_a_script_of_a_process_substitution_runs_in_the_image(login: Login) -> None:
    line = f'"{login.command}" sbatch --image=python <(printf "#!/bin/sh\\necho hi\\n")'
    subprocess.run(["/bin/bash", "-c", line], env=login.environment, check=True, timeout=30)
    assert carried(login.submitted) == SCRIPT


def test_a_named_pipe_runs_in_the_image(login: Login) -> None:
    pipe = login.folder / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(SCRIPT))
    writer.start()
    assert login.run("sbatch", "--image=python", "./pipe")[:2] == (0, b"7\n")
    writer.join()
    assert (carried(login.submitted), os.path.basename(login.words[0])) == (SCRIPT, "pipe")


def test_what_cannot_be_read_is_never_submitted_without_its_image(login: Login) -> None:
    (login.folder / "dos.sh").write_bytes(b"#!/bin/sh\r\n")
    for name in ("none.sh", "./dos.sh", "/dev/null", "./bin"):
        code, out, error = login.run("sbatch", "--image=python", name)
        assert (code, out, error) == (1, b"", b"sbatch: error: Unable to open file\n")
    login.slurm("sbatch", "#!/bin/sh\nexit 0\n")
    code, _, error = login.run("sbatch", "--image=python", "none.sh")
    assert code == 255
    assert error == b"sbatch: error: --image: the script cannot be read as sbatch reads it\n"


def test_a_file_keeps_its_name_and_leaves_nothing_behind(login: Login) -> None:
    (login.folder / "-odd name.sh").write_bytes(SCRIPT)
    (login.folder / "tmp").mkdir()
    login.environment["TMPDIR"] = str(login.folder / "tmp")
    assert login.run("sbatch", "--image=python", "./-odd name.sh", "x")[:2] == (0, b"7\n")
    assert (os.path.basename(login.words[0]), login.words[1:]) == ("-odd name.sh", ["x"])
    assert list((login.folder / "tmp").iterdir()) == []
    del login.environment["TMPDIR"]


def test_the_signal_that_ends_sbatch_ends_the_command(login: Login) -> None:
    (login.folder / "run.sh").write_bytes(SCRIPT)
    login.slurm("sbatch", "#!/bin/sh\nkill -USR1 $$\n")
    assert login.run("sbatch", "--image=python", "./run.sh")[0] == -signal.SIGUSR1


def test_a_signal_reaches_sbatch(login: Login) -> None:
    (login.folder / "run.sh").write_bytes(SCRIPT)
    login.slurm(
        "sbatch",
        "#!/bin/sh\ntrap 'exit 9' TERM\necho up\nfor i in $(seq 1800); do sleep 0.05; done\n",
    )
    found = login.start("sbatch", "--wait", "--image=python", "./run.sh")
    assert found.stdout is not None
    assert found.stdout.readline() == b"up\n"
    found.send_signal(signal.SIGTERM)
    found.communicate(timeout=30)
    assert found.returncode == 9


@pytest.mark.parametrize("name", ["run.sh", ""])
def test_broken_pipes_end_programs_as_without_the_command(login: Login, name: str) -> None:
    (login.folder / "run.sh").write_bytes(SCRIPT)
    login.slurm("sbatch", "#!/bin/sh\ngrep SigIgn /proc/self/status\n")
    words = ["--image=python", f"./{name}"] if name else ["-"]
    plain = subprocess.run(["grep", "SigIgn", "/proc/self/status"], capture_output=True, check=True)
    assert login.run("sbatch", *words, stdin=SCRIPT)[1] == plain.stdout


def test_control_z_stops_the_command_and_sbatch(login: Login) -> None:
    (login.folder / "run.sh").write_bytes(SCRIPT)
    login.slurm("sbatch", "#!/bin/sh\necho up\nsleep 1\necho done\n")
    pid, terminal = pty.fork()
    if pid == 0:
        # A shell with job control: it goes on only if the command stops.
        line = f"cd {login.folder}; {login.command} sbatch --wait --image=python ./run.sh; "
        line += "echo stopped; fg > /dev/null; exit"
        os.execve("/bin/bash", ["bash", "--norc", "-mc", line], login.environment)
    seen = b""
    deadline = time.monotonic() + 10
    while (
        b"done" not in seen
        and select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]
    ):
        try:
            seen += os.read(terminal, 1000)
        except OSError:
            break
        if seen.endswith(b"up\r\n"):
            os.write(terminal, b"\x1a")
    os.close(terminal)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert b"stopped" in seen
    assert b"done" in seen


def test_a_trial_prints_a_script_whatever_the_names(login: Login) -> None:
    (login.folder / "run.sh").write_bytes(SCRIPT)
    comment = b"--comment=\xff\nid"
    code, out, error = login.run("sbatch", "--dry-run", "--image=python", comment, "./run.sh")
    assert (code, error) == (0, b"")
    assert out.startswith(b"# sbatch '--comment=\xff\n# id' ./run.sh\n#!/bin/sh\n")
    assert carried(out) == SCRIPT
    assert not (login.bin / "sbatch.words").exists()


TOO_EARLY = """#!/bin/sh
echo "sbatch: error: Batch job submission failed: $WORDS" >&2
exit 3
"""
UNKNOWN = "Invalid generic resource (gres) specification"


@pytest.mark.parametrize("by", ["stdin", "file", "wrap"])
@pytest.mark.parametrize(
    ("options", "words", "noted"),
    [
        (["--fgpu=0.5"], UNKNOWN, True),
        (["--fgpu=0.5"], "Invalid qos specification", False),
        (["--gres=tpu:1"], UNKNOWN, False),  # which the site may never have
    ],
)
def test_gpus_that_slurm_does_not_know_yet_are_explained(
    login: Login, by: str, options: list[str], words: str, noted: bool
) -> None:
    login.slurm("sbatch", TOO_EARLY)
    login.environment["WORDS"] = words
    (login.folder / "job.sh").write_bytes(SCRIPT)
    how = {"stdin": [], "file": ["job.sh"], "wrap": ["--wrap=hostname"]}[by]
    stdin = SCRIPT if by == "stdin" else None
    code, out, error = login.run("sbatch", "--image=python", *options, *how, stdin=stdin)
    first, *rest = error.decode().splitlines()
    assert (code, out) == (3, b"")
    assert first == f"sbatch: error: Batch job submission failed: {words}"
    assert [line.startswith("slipway: note: ") for line in rest] == [True] * noted


def test_a_job_with_a_share_of_a_gpu_is_submitted_as_others_are(login: Login) -> None:
    code, out, error = login.run("sbatch", "--image=python", "--fgpu=0.5", stdin=SCRIPT)
    assert (code, out.splitlines()[-1], error) == (0, b"7", b"")
    assert any(word.startswith("--gres=") for word in login.words)


@pytest.mark.parametrize(
    ("options", "before", "after"),
    [
        (["--fgpu=0.5"], None, "shard:1"),
        (["--fgpu=0.5"], "shard:9", "shard:1"),  # of the job that submits this one
        (["--fgpu=0.5"], "none", "none"),  # as the person wants it
        (["--fgpu=4"], None, ""),  # whole GPUs
        ([], None, ""),
    ],
)
def test_steps_get_the_share_where_there_are_several_kinds(
    login: Login, options: list[str], before: str | None, after: str
) -> None:
    login.slurm("sbatch", f'{SUBMITS}\nprintf %s "$SLURM_STEP_GRES" > "$0.gres"\n')
    if before is not None:
        login.environment["SLURM_STEP_GRES"] = before
    assert login.run("sbatch", "--image=python", *options, stdin=SCRIPT)[0] == 0
    login.environment.pop("SLURM_STEP_GRES", None)
    assert (login.bin / "sbatch.gres").read_text() == after
