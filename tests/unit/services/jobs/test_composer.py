"""Submitting jobs: bad requests change nothing, and no key submits twice."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session as Database
from sqlmodel import col, select

from portal.config.images import ImageSettings
from portal.core.auth.person import Person
from portal.core.cluster.inventory import Partition
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.cluster.limits import Association, Limits, PartitionAccess, Qos
from portal.core.jobs.compose.drafts import SCRIPTS_KEPT
from portal.core.jobs.compose.submission import JobRequest
from portal.core.jobs.job import Job, JobTexts
from portal.errors import (
    Conflict,
    InvalidRequest,
    KeyReused,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from portal.node.batch.request import Request
from portal.node.batch.submit.wrapped import batch_script
from portal.services.jobs.composer import JobScript
from portal.store.tables import AuditRow, SubmissionRow
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import make_settings

ALICE = Person("alice", False, "a")
BOB = Person("bob", False, "b")
SCRIPT = "#!/bin/sh\nhostname\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    images = ImageSettings(own="registries", registries=("registry.example.org",))
    found = make_world(make_settings(tmp_path).model_copy(update={"images": images}))
    found.worker.read_partitions()
    found.worker.read_limits()
    return found


def request(world: World, **changes: Any) -> JobRequest:
    return world.services.composer.parse(ALICE, {"script": SCRIPT} | changes)


def test_a_job_is_submitted_as_the_user_and_recorded(world: World) -> None:
    composer = world.services.composer
    number = composer.submit(ALICE, request(world, name="first", image="python/3.13"))
    assert number == "1"
    words = ["--job-name=first", "--image=python/3.13"]
    assert world.slurm.submitted == [("alice", words, SCRIPT)]
    assert composer.submitted(ALICE, "1") and not composer.submitted(BOB, "1")
    with Database(world.engine) as db:
        found = db.exec(select(AuditRow).where(AuditRow.action == "job.submit")).one()
        assert (found.who, found.target) == ("alice", "1")
        assert found.detail == "first, image python/3.13"


def test_the_same_key_submits_once(world: World) -> None:
    composer = world.services.composer
    assert composer.submit(ALICE, request(world), "k") == "1"
    assert composer.submit(ALICE, request(world), "k") == "1"
    assert composer.submit(BOB, request(world), "k") == "2"
    with pytest.raises(KeyReused):
        composer.submit(ALICE, request(world, name="other"), "k")
    assert len(world.slurm.submitted) == 2


def test_a_refused_request_can_be_repeated_with_its_key(world: World) -> None:
    composer = world.services.composer
    world.slurm.refuse = "Invalid account or account/partition combination specified"
    with pytest.raises(InvalidRequest, match="account/partition"):
        composer.submit(ALICE, request(world), "k")
    world.slurm.refuse, world.slurm.down = "", True
    with pytest.raises(Unavailable, match="nothing can be submitted right now"):
        composer.submit(ALICE, request(world), "k")
    world.slurm.down = False
    assert composer.submit(ALICE, request(world), "k") == "1"


def test_a_lost_answer_is_never_submitted_again(world: World) -> None:
    world.slurm.lose_answer = True
    composer = world.services.composer
    for _ in range(2):
        with pytest.raises(OutcomeUnknown, match="Look at your jobs before you submit it again"):
            composer.submit(ALICE, request(world), "k")
    assert len(world.slurm.submitted) == 1


def test_a_repeated_request_is_answered_although_its_file_is_gone(world: World) -> None:
    composer = world.services.composer
    request = composer.parse(ALICE, {"path": "~/run.sh"})
    with pytest.raises(InvalidRequest, match="path: there is no such file"):
        composer.submit(ALICE, request, "k")
    world.slurm.files["/home/alice/run.sh"] = SCRIPT.encode()
    assert composer.submit(ALICE, request, "k") == "1"
    del world.slurm.files["/home/alice/run.sh"]
    assert composer.submit(ALICE, request, "k") == "1"
    assert len(world.slurm.submitted) == 1


def test_a_crash_after_sbatchs_answer_never_submits_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, composer = world.systems.stores.submissions, world.services.composer

    def crash(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "sent", crash)
        with pytest.raises(SystemExit):
            composer.submit(ALICE, request(world), "k")
    with pytest.raises(OutcomeUnknown, match="Look at your jobs before you submit it again"):
        composer.submit(ALICE, request(world), "k")
    assert len(world.slurm.submitted) == 1


def test_lost_answers_keep_no_more_scripts_than_others(world: World) -> None:
    """A shell of one's own can lose every answer: their scripts once filled the database."""
    world.slurm.lose_answer = True
    asked = request(world)
    for _ in range(SCRIPTS_KEPT + 5):
        world.clock.advance(seconds=1)
        with pytest.raises(OutcomeUnknown):
            world.services.composer.submit(ALICE, asked)
    with Database(world.engine) as db:
        kept = db.exec(select(SubmissionRow).where(col(SubmissionRow.request).is_not(None))).all()
    assert len(kept) == SCRIPTS_KEPT


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"image": "python/9"}, "image", "python has no version 9"),
        ({"image": "r"}, "image", "there is no image named r"),
        ({"image": "oras://x/y"}, "image", "images from oras:// are not permitted"),
        ({"resource_group": "gpu"}, "resource_group", "choose one of: main"),
    ],
)
def test_what_does_not_exist_is_named(
    world: World, changes: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        request(world, **changes)
    assert [(e.field, e.message) for e in caught.value.errors] == [(field, words)]


@pytest.mark.parametrize(
    "image", ["~/own.sif", "/x/y.sif", "own.sif", "docker://registry.example.org/a"]
)
def test_own_images_are_left_to_the_command(world: World, image: str) -> None:
    assert request(world, image=image).image == image


def test_a_file_is_looked_at_before_it_is_submitted(world: World) -> None:
    composer = world.services.composer
    request = composer.parse(ALICE, {"path": "~/run.sh"})
    with pytest.raises(InvalidRequest, match="path: there is no such file"):
        composer.submit(ALICE, request)
    world.slurm.files["/home/alice/run.sh"] = b"echo\n"
    with pytest.raises(InvalidRequest, match="path: begin the first line with #!"):
        composer.check(ALICE, request)
    for script in (SCRIPT.encode("utf-8-sig"), SCRIPT.encode("utf-16")):
        world.slurm.files["/home/alice/run.sh"] = script
        with pytest.raises(InvalidRequest, match=r"path: .*byte-order mark \(BOM\)"):
            composer.check(ALICE, request)
    world.slurm.files["/home/alice/run.sh"] = SCRIPT.encode()
    assert composer.submit(ALICE, request) == "1"
    assert world.slurm.submitted == [("alice", ["./run.sh"], "")]


def test_a_check_submits_nothing(world: World) -> None:
    said = world.services.composer.check(ALICE, request(world))
    assert said.startswith("It would start at 2026-11-20T15:00:00 UTC")
    assert "tasks" not in said
    assert world.slurm.submitted == []


def test_a_check_of_an_array_tells_its_tasks(world: World) -> None:
    def last_line(**changes: Any) -> str:
        return world.services.composer.check(ALICE, request(world, **changes)).splitlines()[-1]

    assert last_line(array="0-49%10") == "This is the first of 50 tasks."
    directive = "#!/bin/sh\n#SBATCH -a 1-9:2\nhostname\n"
    assert last_line(script=directive) == "This is the first of 5 tasks."
    assert last_line(script=directive, options=["--array=1-3"]) == "This is the first of 3 tasks."
    world.slurm.files["/home/alice/run.sh"] = directive.encode()
    assert last_line(script=None, path="~/run.sh") == "This is the first of 5 tasks."
    assert "tasks" not in last_line(array="7")


def test_a_file_is_read_for_the_editor(world: World) -> None:
    composer = world.services.composer
    world.slurm.files |= {
        "/home/alice/a": b"#!/bin/sh\r\nid\r\n",
        "/home/alice/b": b"\xff",
        "/home/alice/c": b"a\0b",
    }
    assert composer.read_script(ALICE, "~/a") == "#!/bin/sh\nid\n"
    world.slurm.files |= {
        "/home/alice/m": SCRIPT.encode("utf-8-sig"),
        "/home/alice/w": SCRIPT.encode("utf-16"),
    }
    assert composer.read_script(ALICE, "~/m") == SCRIPT
    with pytest.raises(InvalidRequest, match="path: this file is in UTF-16"):
        composer.read_script(ALICE, "~/w")
    for path in ("~/b", "~/c"):
        with pytest.raises(InvalidRequest, match="path: this file is not text in UTF-8"):
            composer.read_script(ALICE, path)
    with pytest.raises(InvalidRequest, match="path: begin with /"):
        composer.read_script(ALICE, "run.sh")


def test_only_the_last_scripts_are_kept(world: World) -> None:
    composer = world.services.composer
    for _ in range(52):
        composer.submit(ALICE, request(world))
        world.clock.advance(minutes=1)
    with Database(world.engine) as db:
        rows = db.exec(select(SubmissionRow).order_by(SubmissionRow.created)).all()  # type: ignore[arg-type]
        assert [row.request is None for row in rows] == [True] * 2 + [False] * 50
    world.clock.advance(days=91)
    composer.submit(ALICE, request(world))
    with Database(world.engine) as db:
        assert len(db.exec(select(SubmissionRow)).all()) == 1


def job(world: World, *, array_id: str = "", tasks: str = "", **changes: Any) -> Job:
    report = JobReport("7", "alice", JobState.COMPLETED, submitted=world.clock(), partition="main",
                       cpus=2, memory_mb=2048, time_limit=30, nodes=("n1",))  # fmt: skip
    texts = JobTexts(**{"name": "seven", "directory": "/data"} | changes)
    return Job(report, array_id=array_id, tasks=tasks, texts=texts)


def again(world: World, found: Job, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is proposed for this job."""
    composer = world.services.composer
    monkeypatch.setattr(composer, "_job_of", lambda _person, _id: found)
    return composer.again(ALICE, "7")


def test_a_job_submitted_here_is_submitted_again_as_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = world.services.composer.submit(ALICE, request(world, array="0-3"), "k")
    found = job(world, array_id=number, tasks="2")
    assert again(world, found, monkeypatch) == {"script": SCRIPT, "array": "0-3"}
    world.clock.advance(days=400)  # Slurm began again with its numbers
    assert again(world, job(world, array_id=number, tasks="2"), monkeypatch)["name"] == "seven"


def test_a_script_that_slurm_has_stored_is_submitted_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of --wrap and standard input; without it the form would be empty."""
    assert "script" not in again(world, job(world), monkeypatch)
    world.slurm.stored["7"] = b"Welcome\n#!/bin/sh\nhostname\n"
    found = again(world, job(world), monkeypatch)
    assert (found["script"], found["resources"]) == (SCRIPT, {"cpus": 2, "memory": "2g"})


def test_the_file_with_the_scripts_text_tells_a_path_from_arguments(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.slurm.stored["7"] = SCRIPT.encode()
    world.slurm.files |= {"/my dir/run": b"#!/bin/sh\nid\n", "/my dir/run me": SCRIPT.encode()}
    found = again(world, job(world, command="/my dir/run me x y"), monkeypatch)
    assert (found["path"], found["args"]) == ("/my dir/run me", ["x", "y"])


def test_the_sites_own_folders_are_mounted_anyway(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    composer = world.services.composer
    monkeypatch.setattr(composer, "_site_folders", ("/scratch",))
    wanted = Request()
    wanted.name, wanted.binds = "python/3.13", [["/scratch", "rw"], ["/home/alice/x", "ro"]]
    world.slurm.stored["7"] = batch_script(SCRIPT.encode(), wanted)
    found = again(world, job(world, command="run.sh"), monkeypatch)
    assert (found["image"], found["script"]) == ("python/3.13", SCRIPT)
    assert found["options"] == ["--mount=/home/alice/x:ro"]


def test_the_script_of_a_job_is_shown_from_where_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    composer, mine = world.services.composer, job(world, command="/home/alice/run")
    monkeypatch.setattr(composer, "_job_of", lambda _person, _id: mine)
    with pytest.raises(Conflict, match="/home/alice/run: "):
        composer.script(ALICE, "7")
    world.slurm.files["/home/alice/run"] = b"#!/bin/sh\nid\n"
    assert composer.script(ALICE, "7") == JobScript("#!/bin/sh\nid\n", "/home/alice/run", "")
    mine = job(world, command="run")
    with pytest.raises(Conflict, match="does not have the script"):
        composer.script(ALICE, "7")
    world.slurm.stored["7"] = SCRIPT.encode()
    assert composer.script(ALICE, "7") == JobScript(SCRIPT, "", "")
    with pytest.raises(NotFound):
        composer.script(BOB, "7")


def test_keys_end_after_their_time(world: World) -> None:
    store = world.systems.stores.submissions
    world.services.composer.submit(ALICE, request(world), "k")
    store.delete("bob", world.clock() + timedelta(days=1), 0)
    assert store.of_job("alice", "1") is not None
    store.delete("alice", world.clock() + timedelta(days=1), 0)
    assert store.of_job("alice", "1") is None


def test_a_qos_that_the_account_may_not_use_is_named(world: World) -> None:
    """In the partition that is asked for, else if there is none in which they can be combined."""
    world.status.save_partitions(
        [Partition(name, name == "main", True, 8, 8192, 600) for name in ("main", "fast")]
    )
    world.status.save_limits(
        Limits(
            enforced=("associations", "limits", "qos"),
            default_accounts={"alice": "research"},
            associations=(
                Association("research", "alice", qos=("normal", "long")),
                Association("crystals", "alice", qos=("normal",)),
            ),
            qos=(Qos("normal"), Qos("long")),
            partitions=(PartitionAccess("main", not_qos=("long",)), PartitionAccess("fast")),
        )
    )

    def wrong(**asked: str) -> list[str]:
        try:
            request(world, **asked)
        except InvalidRequest as error:
            return [one.field for one in error.errors]
        return []

    assert wrong(account="research", qos="long") == []
    assert wrong(account="research", qos="long", resource_group="main") == ["qos"]
    assert wrong(account="crystals", qos="long") == ["qos"]
    assert wrong(account="law", qos="long") == ["account"]
    assert wrong(qos="long") == []  # the script may name an account


@pytest.mark.parametrize("how", ["submit", "check"])
@pytest.mark.parametrize("by", ["script", "path"])
def test_gpus_that_slurm_does_not_know_yet_are_no_refusal(world: World, how: str, by: str) -> None:
    """As in the first seconds after slurmctld's restart: 503, nothing is submitted or claimed."""
    world.slurm.gres = {"n1": "gpu:demo:1,shard:demo:4"}
    world.worker.read_partitions()
    world.slurm.refuse = "Invalid generic resource (gres) specification"
    script = f"#!/bin/sh\n#SBATCH --gres=gpu:demo:1\n{SCRIPT}"
    world.slurm.files["/home/alice/job.sh"] = script.encode()
    body = {"script": script} if by == "script" else {"path": "~/job.sh"}
    composer = world.services.composer
    asked = composer.parse(ALICE, body)

    def ask() -> str:
        if how == "check":
            return composer.check(ALICE, asked)
        return composer.submit(ALICE, asked, "k")

    with pytest.raises(Unavailable, match="Try again in a few seconds"):
        ask()
    world.slurm.refuse = ""
    ask()  # the same key may be used
    assert len(world.slurm.submitted) == (how == "submit")


def test_gpus_that_no_node_has_are_refused(world: World) -> None:
    world.slurm.refuse = "Invalid generic resource (gres) specification"
    with pytest.raises(InvalidRequest) as caught:
        world.services.composer.submit(ALICE, request(world, options=["--gres=gpu:1"]))
    assert [wrong.field for wrong in caught.value.errors] == ["options"]
