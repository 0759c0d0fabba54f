"""The page of one job: all facts, for owner and administrators only, waiting, running and over."""

from __future__ import annotations

import re

import pytest
from flask import Flask

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import JobTexts
from tests.support.fakes import World
from tests.support.measured_jobs import end, live_step, record, run, submit
from tests.unit.web.conftest import Browser


@pytest.fixture
def admin(app: Flask) -> Browser:
    return Browser(app).log_in("admin")


def test_all_that_was_asked_for_and_given_is_shown(world: World, alice: Browser) -> None:
    run(world, restarts=2)
    text = alice.get("/jobs/7").text
    for shown in (
        "fit", "Job 7", "Running", "/home/alice/run/fit.sh --fast", "/home/alice/run/job.out",
        "/home/alice/run/job.err", "<dd>main</dd>", "research", "normal", "8 GB", "<dd>n1</dd>",
        "1 h", "2 times",
    ):  # fmt: skip
        assert shown in text, shown
    assert re.findall(r'data-act="(\w+)"', text) == ["requeue", "cancel"]


def test_paths_cannot_change_how_the_page_is_read(world: World, alice: Browser) -> None:
    odd = JobTexts("fit", "/d\u202e\n", "/c\u2066 <b>", "/o\x1b[2J", "/e\u200f", "\u202eafter:1")
    submit(world, texts=odd)
    for path in ("/jobs/7", "/jobs/7/output", "/jobs/7/output?stream=stderr"):
        text = alice.get(path).text
        assert not [sign for sign in "\u202e\u2066\x1b\u200f" if sign in text], path
    assert "<code>/d\ufffd\ufffd</code>" in alice.get("/jobs/7").text


def test_a_pending_job_says_why_and_for_which_jobs_it_waits(world: World, alice: Browser) -> None:
    texts = JobTexts("fit", dependency="afterok:5_*(unfulfilled),afterany:6(unfulfilled)")
    submit(world, reason="Dependency", texts=texts)
    text = alice.get("/jobs/7").text
    assert "It starts when all of these are so" in text
    assert re.findall(r'<a href="/jobs/(\w+)">job \1</a> ([a-z ]+)', text) == [
        ("5", "has ended successfully"),
        ("6", "has ended"),
    ]
    assert re.findall(r'data-act="(\w+)"', text) == ["hold", "cancel"]
    assert "It appears here when the job runs." in text


def test_a_job_that_failed_says_how_and_can_no_longer_be_acted_on(
    world: World, alice: Browser
) -> None:
    end(world, state=JobState.FAILED, exit_code=7)
    text = alice.get("/jobs/7").text
    assert re.search(r"<dt>Exit code</dt><dd>7", text)
    assert "Failed" in text
    assert "data-act=" not in text


@pytest.mark.parametrize(
    "path", ["", "/now", "/usage", "/output", "/output/text", "/output/download"]
)
def test_others_get_the_same_answer_as_for_no_job(
    world: World, alice: Browser, bob: Browser, path: str
) -> None:
    run(world)
    world.slurm.files["/home/alice/run/job.out"] = b"secret"
    refused, missing = bob.get(f"/jobs/7{path}"), alice.get(f"/jobs/8{path}")
    assert refused.status_code == missing.status_code == 404
    assert refused.text.replace("bob", "") == missing.text.replace("alice", "")
    assert not any("job.out" in line or "sstat" in line for line in world.slurm.commands)


def test_others_cannot_extend_it(world: World, bob: Browser) -> None:
    run(world)
    assert bob.post("/jobs/7/extend", {"minutes": "60"}).status_code == 404


def test_an_administrator_is_told_that_the_owner_will_know(
    world: World, admin: Browser, alice: Browser
) -> None:
    run(world)
    world.slurm.files["/home/alice/run/job.out"] = b"hello\n"
    page = admin.get("/jobs/7").text
    assert "who is told if you read it" in page
    assert "log-end" not in page
    assert "an administrator" not in alice.get("/jobs/7").text
    for _ in range(3):
        assert admin.get("/jobs/7/output/text").text == "hello\n"
    assert "admin (an administrator) read its output" in alice.get("/jobs/7").text
    assert "admin (an administrator) read it" in alice.get("/jobs/7/output").text
    events = world.systems.stores.administration.events_of("7", ("job.read",), 9)
    assert [(event.who, event.detail) for event in events] == [
        ("admin", "the output of alice's job")
    ]


def test_the_poll_is_empty_until_something_changes(world: World, alice: Browser) -> None:
    run(world)
    first = alice.get("/jobs/7/now")
    mark = {"If-None-Match": first.headers["ETag"]}
    assert alice.get("/jobs/7/now", headers=mark).status_code == 204
    end(world)
    assert "Completed" in alice.get("/jobs/7/now", headers=mark).text


def test_slurm_is_asked_for_its_use_once_for_all_who_look(
    world: World, alice: Browser, admin: Browser
) -> None:
    run(world)
    world.slurm.steps[7] = [live_step(7, 120)]
    htmx = {"HX-Request": "true"}
    text = alice.get("/jobs/7/usage", headers=htmx).text
    assert "2 of 4 cores busy on average" in text
    assert "3 GB of 8 GB now" in text
    for browser in (alice, admin):
        browser.get("/jobs/7/usage", headers=htmx)
        browser.get("/jobs/7")
        browser.get("/jobs/7/now")
    asked = [line for line in world.slurm.commands if "sstat" in line]
    assert len(asked) == 1
    assert asked[0].startswith("alice: sstat --allsteps")
    world.clock.advance(seconds=10)
    world.slurm.steps[7] = [live_step(7, 150)]
    assert "3 of 4 cores busy now" in admin.get("/jobs/7/usage", headers=htmx).text
    assert "3 of 4 cores busy now" in alice.get("/jobs/7").text


def test_an_sstat_of_ones_own_cannot_break_the_page(
    world: World, alice: Browser, admin: Browser
) -> None:
    """Amounts of thirty digits could not be formatted: the page failed, for administrators too."""
    run(world)
    most, long = "999999999999999999P", "999999-999999:59:59.999999"
    for size in (most, "1023P"):
        total = f"cpu={long},mem={size},gres/gpuutil=999999,gres/gpumem={size}"
        line = f"7.0|999999999999999|{long}|{size}|{size}|n1|{total}"
        world.slurm.steps[7] = [line, *(line.replace("7.0", f"7.{n}") for n in range(1, 600))]
        for browser in (alice, admin):
            answer = browser.get("/jobs/7/usage", headers={"HX-Request": "true"})
            assert answer.status_code == 200
            assert browser.get("/jobs/7").status_code == 200
        world.clock.advance(seconds=10)


def test_without_a_script_a_link_asks_again(world: World, alice: Browser) -> None:
    run(world)
    world.slurm.steps[7] = [live_step(7, 60)]
    answer = alice.get("/jobs/7/usage")
    assert (answer.status_code, answer.location) == (303, "/jobs/7#job-use")
    assert "1 of 4 cores busy on average" in alice.get("/jobs/7").text


def test_what_it_used_is_told_after_its_end(world: World, alice: Browser) -> None:
    end(world)
    htmx = {"HX-Request": "true"}
    assert "Slurm's accounting" in alice.get("/jobs/7/usage", headers=htmx).text
    world.clock.advance(seconds=30)
    world.slurm.steps[7] = record(7, 600, "00:10:00", "1024M")
    text = alice.get("/jobs/7/usage", headers=htmx).text
    assert "25 % of its cores&#39; time" in text
    assert "It kept 1 of its 4 cores busy on average." in text
    assert "It used at most 1 GB of 8 GB." in text
    assert "2 cores and 1.5 GB of memory would have done" in text
    world.clock.advance(hours=1)
    world.slurm.commands.clear()
    assert alice.get("/jobs/7/usage", headers=htmx).text == text
    assert not any("sacct" in line for line in world.slurm.commands)


def test_a_node_that_does_not_answer_is_told_in_words(world: World, alice: Browser) -> None:
    run(world)
    text = alice.get("/jobs/7/usage", headers={"HX-Request": "true"}).text
    assert "Slurm does not tell what it uses: sstat: error: couldn&#39;t get steps" in text


def test_a_task_of_an_array_leads_to_the_others(world: World, alice: Browser) -> None:
    submit(world, 20, array_id="20", tasks="5-9")
    run(world, 21, array_id="20", tasks="4")
    text = alice.get("/jobs/20_4").text
    assert "This is task 4." in text
    assert "/jobs?array=20&amp;state=pending" in text
    assert "5 tasks pending" in text
    assert "1 task running" in text
    assert 'hx-get="/jobs/20_4/now"' in text
    assert alice.get("/jobs/20_%5B5-9%5D").status_code == 200


def test_all_tasks_of_an_array_are_counted(
    world: World, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.store.jobs.query.MAX_SEARCHED", 2)
    for number in range(21, 26):
        end(world, number, array_id="20", tasks=str(number - 21))
    assert "5 tasks ended" in alice.get("/jobs/20_1").text


def test_names_and_paths_are_shown_as_text(world: World, alice: Browser) -> None:
    evil = "<script>alert(1)</script>"
    run(world, texts=JobTexts(*[f"/home/{evil}"] * 6))
    for path in ("/jobs/7", "/jobs/7/output"):
        assert "<script>alert" not in alice.get(path).text


def test_while_slurm_does_not_answer_the_page_says_so(world: World, alice: Browser) -> None:
    run(world)
    assert "has not answered" not in alice.get("/jobs/7").text
    world.slurm.down = True
    world.worker.poll()
    for path in ("/jobs/7", "/jobs/7/now", "/jobs"):
        assert "Slurm has not answered since" in alice.get(path).text, path
    world.slurm.down = False
    world.worker.poll()
    assert "has not answered" not in alice.get("/jobs").text


def test_a_page_that_is_not_there_leads_back_to_the_jobs(alice: Browser) -> None:
    answer = alice.get("/jobs/999")
    assert answer.status_code == 404
    assert '<a class="btn btn-primary" href="/jobs">' in answer.text
    assert "Back to the jobs" in answer.text
