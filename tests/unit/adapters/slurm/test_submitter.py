"""Submission with a real shell and a program in the place of `slipway`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.adapters.slurm.submitter import LoginNodeSubmitter
from portal.core.jobs.compose.command import SubmitCommand
from portal.core.jobs.compose.refusals import ScriptTooLong, ScriptUnreadable, SubmissionRefused
from portal.core.jobs.compose.submission import MAX_SCRIPT
from portal.errors import OutcomeUnknown, Unavailable
from tests.support.transports import ShellTransport

HARD = """a 'b' "c" $HOME `id` $(id) \\ ; & | < > * ? ~ # ! é"""
SCRIPT = "#!/bin/sh\necho 123456\n"


@pytest.fixture
def shell(tmp_path: Path) -> ShellTransport:
    return ShellTransport(tmp_path)


def submitter(shell: ShellTransport, program: str, seconds: float = 5) -> LoginNodeSubmitter:
    """One for a `slipway` that is this shell script."""
    file = shell.home / "slipway"
    file.write_text(f'#!/bin/sh\n[ "$1" != as-login ] || {{ shift; exec "$@"; }}\n{program}\n')
    file.chmod(0o755)
    return LoginNodeSubmitter(shell, str(file), seconds)


NOTES = 'printf "%s\\0" "$PWD" "$@" > "$HOME/words"; cat > "$HOME/stdin"; echo 77'


def test_words_and_script_arrive_unchanged(shell: ShellTransport) -> None:
    (shell.home / HARD).mkdir()
    command = SubmitCommand((f"--job-name={HARD}", "-J", HARD), SCRIPT, directory=f"~/{HARD}")
    assert submitter(shell, NOTES).submit("alice", command) == "77"
    words = (shell.home / "words").read_text().split("\0")
    chdir = f"--chdir={shell.home}/{HARD}"
    assert words[:-1] == [
        str(shell.home), "sbatch", "--parsable", chdir, f"--job-name={HARD}", "-J", HARD,
    ]  # fmt: skip
    assert (shell.home / "stdin").read_text() == SCRIPT


def test_arguments_follow_the_script_unchanged(shell: ShellTransport) -> None:
    arguments = ("-x", HARD, "", "--parsable")
    command = SubmitCommand(("--hold",), SCRIPT, script_arguments=arguments)
    assert submitter(shell, NOTES).submit("alice", command) == "77"
    words = (shell.home / "words").read_text().split("\0")
    assert words[1:-1] == ["sbatch", "--parsable", "--hold", "/dev/stdin", *arguments]
    assert (shell.home / "stdin").read_text() == SCRIPT


def test_a_file_is_named_in_its_own_folder(shell: ShellTransport) -> None:
    (shell.home / "a b").mkdir()
    command = SubmitCommand(("--hold",), None, "-run.sh", "~/a b")
    assert submitter(shell, NOTES).submit("alice", command) == "77"
    words = (shell.home / "words").read_text().split("\0")
    assert words[:-1] == [f"{shell.home}/a b", "sbatch", "--parsable", "--hold", "./-run.sh"]


def test_a_greeting_is_not_taken_for_the_number(shell: ShellTransport) -> None:
    shell.chat = b"12345\n"
    assert submitter(shell, "echo '77;cluster'").submit("alice", SubmitCommand((), "x")) == "77"


@pytest.mark.parametrize(
    "output",
    ["echo Welcome; echo 5 jobs; echo 77", "echo '77;cluster'; echo; echo 'See you soon.'",
     "echo 12; echo 77; echo"],
)  # fmt: skip
def test_what_a_site_prints_around_the_number_is_not_taken_for_it(
    shell: ShellTransport, output: str
) -> None:
    assert submitter(shell, output).submit("alice", SubmitCommand((), "x")) == "77"


@pytest.mark.parametrize(
    "output", ["", "echo hello", "echo 77; echo 78; echo Bye", "echo 77 78", "echo -1"]
)
def test_an_answer_without_a_number_may_be_a_job(shell: ShellTransport, output: str) -> None:
    with pytest.raises(OutcomeUnknown, match="no number of a job"):
        submitter(shell, output).submit("alice", SubmitCommand((), "x"))


def test_a_slow_answer_may_be_a_job(shell: ShellTransport) -> None:
    with pytest.raises(OutcomeUnknown, match="Slurm took too long"):
        submitter(shell, "exec sleep 9", 1).submit("alice", SubmitCommand((), "x"))


@pytest.mark.parametrize(
    "words",
    [
        "Socket timed out on send/recv operation",
        "Zero Bytes were transmitted or received",
        "Transport endpoint is not connected",
    ],
)
def test_an_answer_that_was_lost_may_be_a_job(shell: ShellTransport, words: str) -> None:
    program = f"echo 'sbatch: error: Batch job submission failed: {words}' >&2; exit 1"
    with pytest.raises(OutcomeUnknown, match="may have been submitted all the same"):
        submitter(shell, program).submit("alice", SubmitCommand((), "x"))
    with pytest.raises(Unavailable, match="Slurm does not answer") as caught:
        submitter(shell, program).check("alice", SubmitCommand((), "x"))
    assert not isinstance(caught.value, OutcomeUnknown)


def test_a_refusal_has_the_words_of_sbatch(shell: ShellTransport) -> None:
    with pytest.raises(SubmissionRefused) as caught:
        submitter(shell, "echo 'sbatch: error: no' >&2; exit 1").submit(
            "alice", SubmitCommand((), "x")
        )
    assert caught.value.text == "sbatch: error: no\n"


@pytest.mark.parametrize("words", ["Unable to contact slurm controller (connect failure)"])
def test_slurm_that_does_not_answer_refuses_nothing(shell: ShellTransport, words: str) -> None:
    program = f"echo 'sbatch: error: Batch job submission failed: {words}' >&2; exit 1"
    with pytest.raises(Unavailable, match="nothing can be submitted right now") as caught:
        submitter(shell, program).submit("alice", SubmitCommand((), "x"))
    assert not isinstance(caught.value, OutcomeUnknown)


def test_a_missing_command_is_a_matter_for_administrators(shell: ShellTransport) -> None:
    with pytest.raises(Unavailable, match=r"cannot be submitted from here: .*administrators"):
        LoginNodeSubmitter(shell, "/nonexistent/slipway", 5).submit("a", SubmitCommand((), "x"))


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (SubmitCommand((), None, "run.sh", "~/none"), "path"),
        (SubmitCommand((), "x", directory="/none"), "directory"),
        (SubmitCommand((), "x", directory="/etc/passwd"), "directory"),
    ],
)
def test_a_missing_folder_is_named_and_nothing_is_run(
    shell: ShellTransport, command: SubmitCommand, field: str
) -> None:
    with pytest.raises(SubmissionRefused, match="no such folder") as caught:
        submitter(shell, NOTES).submit("alice", command)
    assert caught.value.field == field
    assert not (shell.home / "words").exists()


def test_a_check_tells_times_in_utc(shell: ShellTransport) -> None:
    program = (
        'echo "sbatch: Job 7 to start at 2026-11-22T10:00:00 using 1 processors on nodes n1 in '
        'partition main" >&2; echo "$TZ $3" > "$HOME/how"; [ "$2" = --test-only ]'
    )
    said = submitter(shell, program).check("alice", SubmitCommand(("-H",), "x"))
    start = "It would start at 2026-11-22T10:00:00 UTC"
    assert said == f"{start} using 1 processors on nodes n1 in partition main"
    assert (shell.home / "how").read_text() == "UTC -H\n"


@pytest.mark.parametrize("start", ["4068-01-10T10:00:00", "66207628800"])
def test_a_check_tells_no_start_that_means_nothing(shell: ShellTransport, start: str) -> None:
    program = f"echo 'sbatch: Job 7 to start at {start} using 1 processors' >&2"
    said = submitter(shell, program).check("alice", SubmitCommand((), "x"))
    assert said == "It would not start within a year using 1 processors"


def test_a_check_reads_seconds_as_well(shell: ShellTransport) -> None:
    program = "echo 'sbatch: Job 7 to start at 1795186800 using 1 processors' >&2"
    said = submitter(shell, program).check("alice", SubmitCommand((), "x"))
    assert said == "It would start at 2026-11-20T15:00:00 UTC using 1 processors"


def scontrol(shell: ShellTransport, program: str) -> LoginNodeSubmitter:
    """One for a `scontrol` that is this shell script."""
    (shell.home / "scontrol").write_text(f"#!/bin/sh\n{program}\n")
    (shell.home / "scontrol").chmod(0o755)
    return LoginNodeSubmitter(shell, "slipway", 5)


def test_the_script_that_slurm_has_stored(
    shell: ShellTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{shell.home}:{os.environ['PATH']}")
    shell.chat = b"Welcome\n"
    program = '[ "$*" = "write batch_script 7 -" ] && printf "#!/bin/sh\\n\\377"'
    assert scontrol(shell, program).stored_script("alice", "7") == b"#!/bin/sh\n\xff"
    said = "echo job script retrieval failed: Invalid job id specified >&2; exit 1"
    with pytest.raises(ScriptUnreadable, match="Invalid job id specified"):
        scontrol(shell, said).stored_script("alice", "7")
    with pytest.raises(ScriptUnreadable):
        scontrol(shell, "exit 0").stored_script("alice", "7")
    with pytest.raises(ValueError, match="invalid job id"):
        scontrol(shell, "exit 0").stored_script("alice", "7;id")


def read(shell: ShellTransport, path: str) -> bytes:
    return LoginNodeSubmitter(shell, "slipway", 5).read_script("alice", path)


def test_a_script_is_read_whole_whatever_its_name(shell: ShellTransport) -> None:
    (shell.home / "-x\t'$(id)").write_bytes(b"#!/bin/sh\n\xff\n" + b"#" * (MAX_SCRIPT - 12))
    assert len(read(shell, "~/-x\t'$(id)")) == MAX_SCRIPT


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda path: None, ScriptUnreadable, "there is no such file"),
        (lambda path: path.mkdir(), ScriptUnreadable, "this is not a file"),
        (os.mkfifo, ScriptUnreadable, "this is not a file"),
        (lambda path: path.symlink_to("/dev/zero"), ScriptUnreadable, "this is not a file"),
        (lambda path: path.write_bytes(b"#" * (MAX_SCRIPT + 1)), ScriptTooLong, "than 512 KB"),
    ],
)
def test_what_is_no_script_is_told_in_words(
    shell: ShellTransport, make: object, error: type[Exception], words: str
) -> None:
    assert callable(make)
    make(shell.home / "x")
    with pytest.raises(error, match=words):
        read(shell, "~/x")
