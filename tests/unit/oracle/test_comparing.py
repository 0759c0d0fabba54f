"""Outcomes of jobs, and what differs between two of them."""

from __future__ import annotations

import base64

import pytest

from tests.oracle import comparing
from tests.oracle.comparing import Common, Difference, differences, unexplained
from tests.oracle.known import IMAGES_PATH

STEPD = "slurmstepd-n1: error: execve(): /no: No such file or directory"
FOLDER = "/home/alice/oracle/3/plain"
COMMON = Common(FOLDER, frozenset({"20001"}))


def listing(path: str, content: bytes) -> dict[str, dict[str, str]]:
    """One file, as on_login.py lists it."""
    return {path: {"mode": "-rw-r--r--", "content": base64.b64encode(content).decode()}}


def contents(text: str, number: str) -> str:
    """What is compared of a file with this text."""
    return comparing.files(listing("out.txt", text.encode()), Common(FOLDER, frozenset({number})))[
        "file:out.txt"
    ]


@pytest.mark.parametrize(
    ("plain", "imaged"),
    [
        ("slurmstepd-n1: error: *** JOB 20001 ON n1", "slurmstepd-n1: error: *** JOB 20002 ON n1"),
        ("/var/spool/job20001/slurm_script", "/var/spool/job20002/slurm_script"),
        ("job 20001 na me RUNNING", "job 20002 na me RUNNING"),
        ("cmp: /tmp/oracle-20001: gone", "cmp: /tmp/oracle-20002: gone"),
        ("StepId=20001.0 at 2026-11-26T10:00:00", "StepId=20002.0 at 2026-11-26T10:00:01"),
    ],
)  # fmt: skip
def test_what_differs_between_any_two_jobs_is_no_difference(plain: str, imaged: str) -> None:
    assert contents(plain, "20001") == contents(imaged, "20002")


@pytest.mark.parametrize("text", ["200012", "120001", "2000", "job 200020"])
def test_only_the_whole_number_is_the_jobs(text: str) -> None:
    assert contents(text, "20002") == text


def test_the_tasks_of_an_array_have_numbers_of_their_own() -> None:
    common = Common(FOLDER, frozenset({"20001", "20002"}))
    text = "20001_1: Job has already finished; /var/spool/slurmd/job20002/slurm_script"
    assert common(text) == "N_1: Job has already finished; /var/spool/slurmd/jobN/slurm_script"


def test_the_runs_folder_may_have_the_jobs_number() -> None:
    folders = ["/home/alice/oracle/20001/plain", "/home/alice/oracle/20001/image"]
    texts = [
        comparing.files(
            listing("o", f"{folder}/x\n".encode()), Common(folder, frozenset({number}))
        )["file:o"]
        for folder, number in zip(folders, ("20001", "20002"), strict=True)
    ]
    assert texts == ["@/x\n", "@/x\n"]


def test_names_of_files_have_the_number_anywhere() -> None:
    places = comparing.files(listing("na me-20001.txt", b"x"), COMMON)
    assert set(places) == {"file:na me-N.txt", "mode:na me-N.txt"}


def test_an_environment_is_compared_by_variable() -> None:
    data = f"A=1\nB=2\0PWD={FOLDER}/sub\0SLURM_JOB_ID=20001\0BASH_FUNC_f%%=() {{ :; }}\0".encode()
    places = comparing.files(listing("environment", data), COMMON)
    assert places == {
        "mode:environment": "-rw-r--r--",
        "environment:A in environment": "1\nB=2",
        "environment:PWD in environment": "@/sub",
        "environment:BASH_FUNC_f%% in environment": "() { :; }",
    }


def test_signals_are_compared_by_their_numbers_and_not_by_their_order() -> None:
    names = [b"SIGUSR1\nSIGCONT\n", b"SIGCONT\nSIGUSR1\n", b"SIGCONT\nSIGCONT\nSIGUSR1\n"]
    texts = [comparing.files(listing("signals", data), COMMON)["file:signals"] for data in names]
    assert texts[0] == texts[1] != texts[2]


def test_records_of_tasks_and_steps_have_places_of_their_own() -> None:
    values = [f"{name}-20001" if name == "WorkDir" else name for name in comparing.RECORD]
    lines = "\n".join(
        "|".join([job, *values]) for job in ("20001", "20001.batch", "20001.0", "20001_4.1")
    )
    places = comparing.record(lines, "20001", COMMON)
    assert places["record:job State"] == places["record:.batch State"] == "State"
    assert {"record:.0 ExitCode", "record:_4.1 ExitCode"} < set(places)
    assert len(places) == 4 * len(comparing.RECORD)


def test_a_submission_without_a_job_is_compared_by_its_words() -> None:
    answer = {"code": 1, "out": "", "err": f"sbatch: error: {FOLDER}/x: gone\n"}
    assert comparing.submission(answer, Common(FOLDER, frozenset())) == {
        "submission:code": "1",
        "submission:output": "",
        "submission:errors": "sbatch: error: @/x: gone\n",
    }


def test_scontrols_records_have_the_command_and_no_times() -> None:
    job = {
        "job_id": 20001,
        "start_time": {"number": 7},
        "standard_output": f"{FOLDER}/20001.out",
        "command": f"{FOLDER}/job.sh",
        "array_task_id": {"number": 4},
    }
    assert comparing.controller([job], COMMON) == {
        "scontrol:4 standard_output": "@/N.out",
        "scontrol:4 command": "@/job.sh",
        "scontrol:4 array_task_id": "{'number': 4}",
    }


def test_a_missing_place_is_a_difference() -> None:
    plain = {"file:a": "1", "file:b": "2", "file:c": "3"}
    imaged = {"file:a": "1", "file:b": "9", "file:d": "4"}
    assert differences(plain, imaged) == [
        Difference("file:b", "2", "9"),
        Difference("file:c", "3", None),
        Difference("file:d", None, "4"),
    ]


PATH = "environment:PATH in environment"


@pytest.mark.parametrize(
    ("place", "plain", "imaged", "known"),
    [
        (PATH, "/usr/bin:/bin", f"/opt/slipway/slurm:{IMAGES_PATH}", True),
        (PATH, "/usr/bin:/bin", "/opt/slipway/slurm:/usr/bin:/bin", True),
        (PATH, "/usr/bin:/bin", "/opt/slipway/slurm:/usr/bin", False),
        (PATH, "/usr/bin", None, False),
        ("environment:LD_LIBRARY_PATH in e", "/x", "/.singularity.d/libs", True),
        ("environment:LD_LIBRARY_PATH in e", "/x", None, False),
        ("file:o", f"{STEPD}\na\nb\n", "a\nSlipway: /i.sif has no /no\nb\n", True),
        ("file:o", f"{STEPD}\na\n", "Slipway: /i.sif has no /other\na\n", False),
        ("file:o", f"{STEPD}\na\n", "Slipway: /i.sif has no /no\n", False),
        ("environment:APPTAINER_NAME in environment", None, "node.sif", True),
        ("environment:APPTAINER_BIND in environment", "/opt/x", None, False),
        ("environment:SINGULARITY_CLEANENV in environment", "1", None, False),
        ("scontrol: command", "@/my job.sh", "/tmp/slipway-X/my job.sh", True),
        ("scontrol: command", "@/my job.sh", "/tmp/slipway-X/job.sh", False),
        ("record:job ExitCode", "0:0", "0:10", False),
    ],
)
def test_only_the_known_form_of_a_difference_is_explained(
    place: str, plain: str | None, imaged: str | None, known: bool
) -> None:
    left = {} if plain is None else {place: plain}
    right = {} if imaged is None else {place: imaged}
    assert bool(unexplained(differences(left, right))) is not known


def test_a_long_value_is_shortened_in_the_report() -> None:
    text = Difference("file:a", "x" * 1000, None, "since it is so").text()
    assert "(not there)" in text
    assert "(since it is so)" in text
    assert len(text) < 700
