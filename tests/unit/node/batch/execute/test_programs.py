"""srun's options about its programs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from portal.node.batch.execute.programs import prepare, send
from portal.node.batch.options import OptionError

IN_JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "job.sh", "PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("hostname", "--job-name=hostname hostname"),
        ("-n 2 ./my/prog --x", "--job-name=prog -n 2 ./my/prog --x"),
        ("-Jmine a", "-Jmine a"),
        ("--job-name mine a", "--job-name mine a"),
        ("-n1 -- a : -n2 b y", "--job-name=a -n1 -- a : --job-name=b -n2 b y"),
        ("--help", "--help"),
        ("-n 2", "-n 2"),
        ("--image=x a", "--job-name=a --image=x a"),
    ],
)
def test_a_step_has_the_name_of_the_users_program(words: str, wanted: str) -> None:
    assert prepare(words.split(), "/home", IN_JOB) == (wanted.split(), [])


def test_a_variable_names_a_job_and_no_step() -> None:
    assert prepare(["a"], "/home", {"SLURM_JOB_NAME": "mine"})[0] == ["a"]
    assert prepare(["a"], "/home", {})[0] == ["--job-name=a", "a"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program."""
    (tmp_path / "program").write_text("#!/bin/sh\n")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ("--bcast=/tmp/x", ""),
        ("-n2 --bcast=/tmp/x --send -l", "-n2 -l"),
        ("--bcast=/tmp/x --send-libs --bcast-exclude /lib -n 2", "-n 2"),
        ("--send-libs=yes --bcast-exclude=/lib --bcast=/tmp/x --", "--"),
    ],
)
def test_the_program_itself_is_broadcast(options: str, kept: str, folder: Path) -> None:
    words, copies = prepare([*options.split(), "./program", "a  b"], str(folder), IN_JOB)
    assert words == ["--job-name=program", *kept.split(), "/tmp/x", "a  b"]
    assert [(copy.source, copy.target) for copy in copies] == [(f"{folder}/./program", "/tmp/x")]


def test_a_program_is_found_as_the_caller_sees_it(folder: Path) -> None:
    inside = folder / "root" / "opt" / "bin"
    inside.mkdir(parents=True)
    (inside / "tool").write_text("")
    environment = {**IN_JOB, "PATH": "/none:/opt/bin", "SLURM_BCAST": "there/x"}
    words, [copy] = prepare(["tool"], "/home", environment, f"{folder}/root")
    assert (copy.source, copy.target) == (f"{inside}/tool", "/home/there/x")
    assert words == ["--job-name=tool", "/home/there/x"]
    with pytest.raises(OptionError, match="--bcast: there is no file gone"):
        prepare(["gone"], "/home", environment, f"{folder}/root")


@pytest.mark.parametrize("value", ["--bcast", "--bcast=/scratch/"])
def test_without_a_name_the_copy_has_one_of_its_own(value: str, folder: Path) -> None:
    place = "/scratch/" if value.endswith("/") else "/tmp/"
    targets = {prepare([value, "./program"], str(folder), IN_JOB)[1][0].target for _ in range(2)}
    assert len(targets) == 2
    assert all(target.startswith(f"{place}slurm_bcast_7.") for target in targets)


def test_each_component_is_broadcast(folder: Path) -> None:
    words = ["--bcast=/tmp/a", "./program", ":", "-n2", "--bcast=/tmp/b", "./program", ":", "date"]
    prepared, copies = prepare(words, str(folder), IN_JOB)
    assert [copy.target for copy in copies] == ["/tmp/a", "/tmp/b"]
    named = ["--job-name=program", "/tmp/a", ":", "--job-name=program", "-n2", "/tmp/b"]
    assert prepared == [*named, ":", "--job-name=date", "date"]


def slurm(folder: Path, text: str) -> dict[str, str]:
    """An environment whose sbcast is this script."""
    (folder / "sbcast").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "sbcast").chmod(0o755)
    return {**IN_JOB, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_slurms_own_command_copies(folder: Path) -> None:
    _, copies = prepare(["--bcast=/tmp/x", "./program"], str(folder), IN_JOB)
    send(copies, slurm(folder, f'echo "$SLURM_JOB_ID" "$@" > {folder}/words'))
    assert (folder / "words").read_text() == f"7 --force {folder}/./program /tmp/x\n"


def test_the_copying_command_has_the_jobs_signals(folder: Path) -> None:
    """All are blocked in the process that stands in for a batch script."""
    _, copies = prepare(["--bcast=/tmp/x", "./program"], str(folder), IN_JOB)
    environment = slurm(folder, f"exec grep SigBlk: /proc/self/status > {folder}/mask")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
    try:
        send(copies, environment, lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    found = int((folder / "mask").read_text().split()[1], 16)
    assert not found & (1 << (signal.SIGUSR1 - 1) | 1 << (signal.SIGTERM - 1))


def test_why_it_could_not_be_copied_is_told(folder: Path) -> None:
    _, copies = prepare(["--bcast=/tmp/x", "./program"], str(folder), IN_JOB)
    environment = slurm(folder, "echo first >&2; echo 'sbcast: error: no space' >&2; exit 1")
    with pytest.raises(OptionError, match=r"^--bcast: sbcast: error: no space$"):
        send(copies, environment)
    del environment["SLURM_JOB_ID"]
    with pytest.raises(OptionError, match=r"^--bcast: there is no job yet"):
        send(copies, environment)
    with pytest.raises(OptionError, match="sbcast was not found"):
        send(copies, {**IN_JOB, "PATH": "/none"})
    send([], {})
