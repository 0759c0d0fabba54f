"""The composer's pages: what was entered stays, errors are beside their fields."""

from __future__ import annotations

import html
import re

import pytest
from flask import Flask

from portal.core.auth.person import Person
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.job import Job, JobTexts
from portal.errors import NotFound
from portal.services.jobs.jobs import Jobs
from tests.support.composer_pages import FORM, SCRIPT, field_error, input_value, script_text
from tests.support.fakes import World
from tests.unit.web.conftest import Browser


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Job]:
    """Alice's jobs that the Jobs page knows."""
    found: dict[str, Job] = {}

    def get(_: Jobs, person: Person, shown_id: str) -> Job:
        if person.name != "alice" or shown_id not in found:
            raise NotFound("There is nothing here, or it is not yours.")
        return found[shown_id]

    monkeypatch.setattr(Jobs, "get", get)
    return found


def test_a_new_page_leaves_everything_to_the_script(alice: Browser) -> None:
    page = alice.get("/jobs/new").text
    assert script_text(page) == "#!/bin/bash\n\n"
    for name in ("name", "resources.cpus", "resources.memory", "time_limit", "array", "options"):
        assert input_value(page, name) == ""
    assert '<input type="radio" name="image" id="image-none" value=""' in page
    assert re.search(r'id="image-none"[^>]* checked', page)


def test_a_job_is_submitted_and_its_page_awaited(
    alice: Browser, bob: Browser, world: World, known: dict[str, Job]
) -> None:
    given = {
        "name": " first ", "image": "python/3.13", "resource_group": "main",
        "resources.nodes": "1", "resources.tasks": "2", "resources.cpus": "3",
        "resources.memory": "2", "resources.shared_memory": "512 MB", "time_limit": "1:30",
        "mount": "data", "read_only": "data", "directory": "~/work", "array": "0-3",
        "options": "--hold --comment 'a b'", "args": "-n 'two words' ''",
    }  # fmt: skip
    world.slurm.files["/home/alice/work/"] = b""
    answer = alice.post("/jobs/new", FORM | given)
    assert (answer.status_code, answer.location) == (303, "/jobs/submitted/1")
    assert world.slurm.submitted == [
        (
            "alice",
            [
                "--chdir=/home/alice/work", "--job-name=first", "--image=python/3.13",
                "--partition=main", "--nodes=1", "--ntasks=2", "--cpus-per-task=3",
                "--mem=2G", "--shm=512m", "--time=90",
                "--array=0-3", "--mount=data:ro", "--hold", "--comment=a b",
                "/dev/stdin", "-n", "two words", "",
            ],
            SCRIPT,
        )
    ]  # fmt: skip
    alice.post("/jobs/new", FORM | given)
    assert len(world.slurm.submitted) == 1
    assert "Job 1 was submitted" in alice.get("/jobs/submitted/1").text
    assert bob.get("/jobs/submitted/1").status_code == 404
    assert alice.get("/jobs/submitted/2").status_code == 404
    known["1"] = Job(JobReport("1", "alice", JobState.PENDING))
    assert alice.get("/jobs/submitted/1").location == "/jobs/1"


@pytest.mark.parametrize(
    ("changes", "name", "message"),
    [
        ({"script": "echo"}, "script", "Begin the first line with #!"),
        ({"source": "file", "path": "run.sh"}, "path", "Begin with / or"),
        ({"source": "file", "path": "~/none"}, "path", "There is no such file"),
        ({"image": "own", "own_image": "r"}, "image", "There is no image named r"),
        ({"image": "python/1"}, "image", "Python has no version 1"),
        ({"resource_group": "gpu"}, "resource_group", "Choose one of: main"),
        ({"resources.nodes": "x"}, "resources-nodes", "This must be a whole number"),
        ({"resources.memory": "much"}, "resources-memory", "Write a size with its unit"),
        ({"time_limit": "soon"}, "time_limit", "Write a time"),
        ({"directory": "work"}, "directory", "Begin with / or"),
        ({"array": "x"}, "array", "Write task numbers"),
        ({"options": "--wrap=id"}, "options", "--wrap is not possible here"),
        ({"options": "run.sh"}, "options", "Run.sh is not an option"),
        ({"options": "'"}, "options", "A quotation mark or backslash is not closed"),
        ({"args": "'"}, "args", "A quotation mark or backslash is not closed"),
        ({"args": "a \u0007"}, "args", "Use printable characters, in one line"),
        ({"name": "\u0007"}, "name", "Use 1 to 200 printable characters"),
    ],
)
@pytest.mark.parametrize("action", ["", "/check", "/command"])
def test_bad_input_is_shown_beside_its_field_and_submits_nothing(
    alice: Browser, world: World, changes: dict[str, str], name: str, message: str, action: str
) -> None:
    if action == "/command" and changes.get("path") == "~/none":
        return  # a command can be shown for a file that is yet to be written
    world.worker.read_partitions()
    given = FORM | {"time_limit": "90", "options": "--hold"} | changes
    answer = alice.post(f"/jobs/new{action}", given)
    assert answer.status_code == 422
    assert field_error(answer.text, name).startswith(message)
    assert world.slurm.submitted == []
    for other in ("time_limit", "options", "array"):
        assert input_value(answer.text, other) == given.get(other, "").strip()
    assert script_text(answer.text) == given["script"].replace("\r\n", "\n")


def test_a_refusal_of_slurm_is_shown_beside_its_field(alice: Browser, world: World) -> None:
    world.slurm.refuse = "Requested time limit is invalid (missing or exceeds some limit)"
    answer = alice.post("/jobs/new", FORM | {"time_limit": "8h"})
    assert answer.status_code == 422
    assert field_error(answer.text, "time_limit") == world.slurm.refuse
    assert script_text(answer.text) == SCRIPT


def test_a_lost_answer_keeps_the_key_until_somebody_decides(alice: Browser, world: World) -> None:
    world.slurm.lose_answer = True
    for _ in range(2):
        answer = alice.post("/jobs/new", FORM)
        assert answer.status_code == 503
        assert "Look at your jobs before you submit it again" in answer.text
        assert input_value(answer.text, "key") == "k"
    assert len(world.slurm.submitted) == 1
    world.slurm.lose_answer = False
    assert alice.post("/jobs/new", FORM | {"afresh": "yes"}).status_code == 303


def test_a_check_shows_the_words_of_sbatch(alice: Browser, world: World) -> None:
    answer = alice.post("/jobs/new/check", FORM)
    assert answer.status_code == 200
    assert "It would start at 2026-11-20T15:00:00 UTC using 1 processors" in answer.text
    assert (input_value(answer.text, "key"), script_text(answer.text)) == ("k", SCRIPT)
    assert world.slurm.submitted == []


def test_the_command_is_shown_quoted(alice: Browser) -> None:
    page = alice.post("/jobs/new/command", FORM | {"name": "it's $x"}).text
    shown = re.search(r'aria-label="The command">(.*?)</pre>', page, re.DOTALL)
    assert shown is not None
    line = """cd ~ && slipway sbatch '--job-name=it'"'"'s $x' <<'EOF'\n"""
    assert html.unescape(shown[1]) == f"{line}{SCRIPT}EOF"


def test_a_file_is_opened_in_the_editor(alice: Browser, world: World) -> None:
    world.slurm.files["/home/alice/run.sh"] = b"#!/bin/csh\r\nid\r\n"
    given = {"source": "file", "path": "~/run.sh", "array": "0-1"}
    answer = alice.post("/jobs/new/script", FORM | given)
    assert script_text(answer.text) == "#!/bin/csh\nid\n"
    assert re.search(r'value="editor" checked', answer.text)
    assert input_value(answer.text, "array") == "0-1"
    answer = alice.post("/jobs/new/script", FORM | {"source": "file", "path": "~/x"})
    assert (answer.status_code, field_error(answer.text, "path")) == (
        422,
        "There is no such file, or you may not look into its folder",
    )


def test_a_job_of_ones_own_is_submitted_again(
    alice: Browser, bob: Browser, known: dict[str, Job]
) -> None:
    given = {"array": "0-3", "options": "--comment 'a b'", "args": 'x "y z"'}
    alice.post("/jobs/new", FORM | given)
    known["1"] = Job(JobReport("1", "alice", JobState.COMPLETED), texts=JobTexts(name="x"))
    page = alice.get("/jobs/new?from=1").text
    assert (script_text(page), input_value(page, "array")) == (SCRIPT, "0-3")
    assert input_value(page, "options") == "'--comment=a b'"
    assert input_value(page, "args") == "x 'y z'"
    assert bob.get("/jobs/new?from=1").status_code == 404


def test_only_the_form_is_sent_to_htmx(alice: Browser) -> None:
    answer = alice.post("/jobs/new/check", FORM, headers={"HX-Request": "true"})
    assert answer.headers["X-Slipway-Panel"] == "compose"
    assert answer.text.lstrip().startswith("<form")
    sent = alice.post("/jobs/new", FORM, headers={"HX-Request": "true"})
    assert (sent.status_code, sent.headers["HX-Redirect"]) == (204, "/jobs/submitted/1")


def test_pages_need_a_login(app: Flask) -> None:
    for path in ("/jobs/new", "/jobs/templates", "/jobs/submitted/1", "/jobs/new/folders"):
        assert Browser(app).get(path).status_code in (302, 303)


def test_folders_are_listed_without_the_path_of_sessions(alice: Browser, world: World) -> None:
    world.slurm.files["/home/alice/storage/data/"] = b""
    page = alice.get("/jobs/new/folders?mount=data&read_only=data").text
    assert "at the same path in the image" in page
    assert "/sessions/new/folders" not in page
    assert re.search(r'name="mount" value="data" checked', page)
