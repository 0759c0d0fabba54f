"""The command line: its words round-trip through shlex and a real shell."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from portal.core.jobs.compose.command import SubmitCommand, names_begin, shell_text, submit_command
from portal.core.jobs.compose.submission import parse_job
from tests.support.submissions import ALL_FIELDS, SCRIPT

HARD = """a 'b' "c" $HOME `id` $(id) \\ ; & | < > * ? ~ # ! é"""
PROGRAM = """#!/bin/sh
printf '%s\\0' "$PWD" "$@"
cat
"""


def test_every_field_becomes_its_option_and_typed_ones_come_last() -> None:
    assert submit_command(parse_job(ALL_FIELDS)) == SubmitCommand(
        arguments=(
            "--job-name=a job's name",
            "--image=python/3.13",
            "--partition=main",
            "--nodes=2",
            "--ntasks=8",
            "--cpus-per-task=4",
            "--mem=1500M",
            "--shm=1g",
            "--fgpu=0.5",
            "--gpu-kind=demo",
            "--time=90",
            "--array=0-19%4",
            "--mount=data:ro",
            "--hold",
            "--constraint=avx",
        ),
        script=SCRIPT,
        directory="~/runs of mine",
        script_arguments=("-n", "two words", "", "it's $HOME"),
    )


def test_what_is_not_given_is_left_to_the_script() -> None:
    assert submit_command(parse_job({"script": SCRIPT})) == SubmitCommand((), SCRIPT)


@pytest.mark.parametrize(
    ("path", "folder", "file"),
    [
        ("~/run.sh", "~", "run.sh"),
        ("~/a b/-x", "~/a b", "-x"),
        ("/x/y.sh", "/x", "y.sh"),
        ("/y", "/", "y"),
    ],
)
def test_a_file_is_submitted_from_its_folder(path: str, folder: str, file: str) -> None:
    found = submit_command(parse_job({"path": path}))
    assert (found.folder, found.file, found.script) == (folder, file, None)


def test_a_folder_whose_name_ends_like_a_mode_keeps_it() -> None:
    mounts = ["data:ro", {"folder": "über a:rw", "read_only": True}]
    found = submit_command(parse_job({"path": "/x.sh", "mounts": mounts}))
    assert {"--mount=data:ro:rw", "--mount=über a:rw:ro"} <= set(found.arguments)


def typed(text: str, home: Path) -> tuple[str, list[str], str]:
    """Folder, words and standard input of the program that a real shell runs for a text."""
    tools = home / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "slipway").write_text(PROGRAM)
    (tools / "slipway").chmod(0o755)
    environment = {"HOME": str(home), "PATH": f"{tools}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["/bin/sh", "-c", text], env=environment, cwd="/", capture_output=True, check=True
    )
    *words, stdin = done.stdout.decode().split("\0")
    return words[0], words[1:], stdin


def test_the_shown_command_does_the_same_in_a_real_shell(tmp_path: Path) -> None:
    script = f"#!/bin/sh\necho {HARD}\nEOF\n"
    body = {"script": script, "name": HARD, "options": [f"--comment={HARD}"]}
    command = submit_command(parse_job(body | {"directory": f"~/{HARD}"}))
    folder, words, stdin = typed(shell_text(command), tmp_path)
    assert folder == str(tmp_path)
    assert words == ["sbatch", f"--chdir={tmp_path}/{HARD}", *command.arguments]
    assert stdin == script


def test_arguments_follow_the_script_in_a_real_shell(tmp_path: Path) -> None:
    arguments = ["-x", HARD, "", "--mem=1"]
    command = submit_command(parse_job({"script": SCRIPT, "args": arguments, "array": "1-2"}))
    _, words, stdin = typed(shell_text(command), tmp_path)
    assert words == ["sbatch", "--array=1-2", "/dev/stdin", *arguments]
    assert stdin == SCRIPT
    command = submit_command(parse_job({"path": "~/run.sh", "args": arguments}))
    assert typed(shell_text(command), tmp_path)[1] == ["sbatch", "./run.sh", *arguments]


def test_the_shown_command_for_a_file_goes_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / HARD.replace("/", "")).mkdir()
    path = f"~/{HARD}/{HARD} run.sh"
    command = submit_command(parse_job({"path": path, "directory": "/work dir", "array": "1-3"}))
    folder, words, _ = typed(shell_text(command), tmp_path)
    assert folder == f"{tmp_path}/{HARD}"
    assert words == ["sbatch", "--chdir=/work dir", "--array=1-3", f"./{HARD} run.sh"]


def test_the_line_can_be_divided_by_shlex() -> None:
    command = submit_command(parse_job({"path": "/x/run.sh", "name": HARD, "directory": "/d e"}))
    words = shlex.split(shell_text(command))
    assert words[:3] == ["cd", "/x", "&&"]
    assert words[3:] == ["slipway", "sbatch", "--chdir=/d e", f"--job-name={HARD}", "./run.sh"]


def test_directives_are_lines_as_sbatch_divides_them() -> None:
    assert names_begin([], "#!/bin/sh\n#SBATCH --begin=now+1\n")
    assert not names_begin([], "#!/bin/sh\n# see\x0c#SBATCH --begin=now+1\n")
