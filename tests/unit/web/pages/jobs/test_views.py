"""The Jobs page: its list, arrays that open, and acting on one or many jobs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape

import pytest
from flask import Flask
from sqlalchemy import event

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.query import JobSort
from portal.store.jobs import query
from portal.web.pages.jobs.list_view import SORTS, STATES, JobListView
from portal.web.pages.jobs.rows import CHIPS
from portal.web.pages.jobs.words import WORDS
from tests.support.fakes import World
from tests.support.slurm import FakeJob
from tests.support.stored_jobs import array, job, store_jobs
from tests.unit.web.conftest import Browser, Runner

HTMX = {"HX-Request": "true"}


def names(text: str) -> list[str]:
    """The rows of a page, from the top."""
    return [unescape(name) for name in re.findall(r'<tr[^>]*data-name="([^"]+)"', text)]


def links(text: str, words: str) -> list[str]:
    """The targets of a page's links whose text begins like this, after an icon."""
    found = re.findall(rf'<a [^>]*href="([^"]+)"[^>]*>\s*(?:<i[^>]*></i>)?\s*{words}', text)
    return [unescape(address) for address in found]


def counts(text: str) -> list[str]:
    """The numbers on the tabs."""
    return re.findall(r'<span class="count">(\d+)</span>', text)


def test_no_time_limit_is_said(world: World, alice: Browser) -> None:
    now = world.clock()
    store_jobs(
        world,
        job(1, now, time_limit=None),
        job(2, now, state="RUNNING", time_limit=None),
        *array(100, now, 0, "0-19", time_limit=None),
    )
    assert alice.get("/jobs?state=pending").text.count("no time limit") == 2
    assert ", no time limit" in alice.get("/jobs?state=running").text
    assert "<dt>Time limit</dt><dd>none" in alice.get("/jobs/2").text


def test_every_state_order_and_action_has_its_words() -> None:
    assert set(CHIPS) == set(JobState)
    assert set(SORTS) == set(JobSort)
    assert {state for states in STATES.values() for state in states} == set(JobState)
    assert {"cancel", "hold", "release", "requeue"} == {str(action) for action in WORDS}


def test_tabs_show_counts_and_the_jobs_in_words(world: World, alice: Browser) -> None:
    now = world.clock()
    store_jobs(
        world,
        job(1, now, name="waits"),
        job(2, now, state="RUNNING", name="runs", nodes=("n1", "n2"), cpus=4),
        job(3, now, state="FAILED", name="failed", exit_code=7),
        *array(100, now, 3, "3-19"),
    )
    running = alice.get("/jobs").text
    assert counts(running) == ["2", "2", "1"]
    assert names(running) == ["array100 (100)", "runs (2)"]
    assert "on n1 and 1 more" in running
    assert "4 cores" in running
    pending = alice.get("/jobs?state=pending").text
    assert names(pending) == ["array100 (100)", "waits (1)"]
    assert "Others are ahead in the queue." in pending
    ended = alice.get("/jobs?state=ended").text
    assert names(ended) == ["failed (3)"]
    assert "exit" in ended
    assert 'name="ids"' not in ended.partition("<tbody")[2].partition("</tbody")[0]


def test_the_list_is_sent_only_if_changed(world: World, alice: Browser) -> None:
    store_jobs(world, job(1, world.clock()))
    etag = alice.get("/jobs/rows?state=pending").headers["ETag"]
    asked = {"If-None-Match": etag}
    world.clock.advance(seconds=5)
    assert alice.get("/jobs/rows?state=pending", headers=asked).status_code == 204
    store_jobs(world, job(1, world.clock(), state="RUNNING"))
    assert alice.get("/jobs/rows?state=pending", headers=asked).status_code == 200


def test_an_array_opens_to_its_tasks_a_page_at_a_time(world: World, alice: Browser) -> None:
    store_jobs(world, *array(100, world.clock(), 25), job(7, world.clock(), state="RUNNING"))
    page = alice.get("/jobs?sort=name").text
    (address,) = links(page, "25 tasks")
    assert address == "/jobs?state=running&sort=name&open=100"
    opened = alice.get(address).text
    assert names(opened) == [
        "array100 (100)", *(f"array100 (100_{task})" for task in range(20)), "job7 (7)"
    ]  # fmt: skip
    assert 'aria-expanded="true"' in opened
    (later,) = links(opened, "Later tasks")
    assert names(alice.get(later).text)[1:-1] == [
        f"array100 (100_{task})" for task in range(20, 25)
    ]
    assert links(opened, "25 tasks") == ["/jobs?state=running&sort=name"]
    only = alice.get("/jobs?array=100").text
    assert "Tasks of array 100" in only
    assert len(names(only)) == 25
    assert links(only, "All jobs") == ["/jobs?state=running"]


def test_tasks_that_are_only_counted_are_said(world: World, alice: Browser) -> None:
    now = world.clock()
    store_jobs(world, *array(100, now - timedelta(days=8), 5, state="COMPLETED"))
    assert world.systems.stores.jobs.count_tasks(now - timedelta(days=7)) == 4
    page = alice.get("/jobs?state=ended").text
    (address,) = links(page, "5 tasks")
    said = "4 completed or cancelled tasks ended more than 7 days ago and are only counted"
    assert said not in page
    for shown in (address, "/jobs?state=ended&array=100"):
        text = alice.get(shown).text
        assert said in text
        assert "array100 (100_4)" in text
    missing = alice.get("/jobs/100_0")
    assert missing.status_code == 404
    assert "Task 0 of array 100 is not listed." in missing.text


def test_a_list_that_is_searched_in_part_says_so(
    world: World, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "MAX_SEARCHED", 2)
    monkeypatch.setattr(JobListView, "most_counted", 2)
    store_jobs(world, *(job(number, world.clock(), state="COMPLETED") for number in range(1, 6)))
    page = alice.get("/jobs?state=ended").text
    assert '<span class="count">2 or more</span>' in page
    assert "of these jobs are searched" not in page
    assert "Only the newest 2 of these jobs" in alice.get("/jobs?state=ended&sort=name").text


@pytest.mark.parametrize("address", ["/jobs?open=100", "/jobs?array=100", "/jobs?owner=bob"])
def test_others_arrays_do_not_open(world: World, alice: Browser, address: str) -> None:
    store_jobs(world, *array(100, world.clock(), 3, user="bob"), job(9, world.clock(), "bob"))
    assert names(alice.get(address).text) == []


@pytest.mark.parametrize(
    "query",
    ["state=all", "sort=price", "cursor=x", "q=%00", "q=" + "x" * 999, "owner=bob", "open=x",
     "open=1&tasks=zzz", "array=0-9", "slurm_state=GONE", "sessions=maybe", "days=-1",
     "open=" + "9" * 30, "tasks=%3Cscript%3E"],
)  # fmt: skip
def test_an_odd_url_shows_the_list_all_the_same(alice: Browser, query: str) -> None:
    answer = alice.get(f"/jobs?{query}")
    assert answer.status_code == 200
    assert "<script>" not in answer.text
    assert alice.get(f"/jobs/rows?{query}").status_code == 200


def test_a_state_to_filter_by_leads_to_its_tab(world: World, alice: Browser) -> None:
    store_jobs(world, job(1, world.clock(), state="TIMEOUT"), job(2, world.clock(), state="FAILED"))
    page = alice.get("/jobs?state=pending&slurm_state=TIMEOUT").text
    assert names(page) == ["job1 (1)"]
    assert re.search(r'aria-current="page">Ended', page)
    nothing = alice.get("/jobs?q=zebra&days=7&partition=main").text
    assert "Nothing here matches" in nothing
    assert links(nothing, "Show all") == ["/jobs?state=running"]


def headers(text: str) -> dict[str, tuple[str, str]]:
    """What the column headers of a page say: words to aria-sort and address."""
    head = text.partition("<thead")[2].partition("</thead")[0]
    found = {}
    for attributes, inside in re.findall(r"<th ([^>]*)>(.*?)</th>", head, re.DOTALL):
        sort = re.search('aria-sort="([a-z]+)"', attributes)
        for address, word in re.findall(r'<a href="([^"]+)"[^>]*>([A-Za-z ]+)', inside):
            found[word] = (sort[1] if sort else "", unescape(address))
    return found


@pytest.mark.parametrize(
    ("tab", "time"), [("pending", "Time limit"), ("running", "Started"), ("ended", "Ended")]
)
def test_every_header_sorts_and_a_second_time_in_reverse(
    world: World, app: Flask, tab: str, time: str
) -> None:
    state = {"pending": "PENDING", "running": "RUNNING", "ended": "FAILED"}[tab]
    store_jobs(world, *(job(number, world.clock(), state=state) for number in (1, 2, 3)))
    admin = Browser(app).log_in("admin")
    start = f"/jobs?state={tab}"
    columns = ["Job", "Owner", "Status", "Partition", "cores", "memory", "Submitted", time]
    first = headers(admin.get(start).text)
    assert list(first) == columns
    assert first["Submitted"] == ("descending", f"{start}&sort=submitted")
    for word, (_, address) in first.items():
        once = headers(admin.get(address).text)[word]
        twice = headers(admin.get(once[1]).text)[word]
        assert {once[0], twice[0]} == {"ascending", "descending"}
        assert twice[1] in (address, start)
    by_name = admin.get(f"{start}&sort=-name").text
    assert names(by_name) == ["job3 (3)", "job2 (2)", "job1 (1)"]
    assert re.search('<option value="-name" selected>Name, Z to A', by_name)
    assert 'id="sort-status"' in by_name


def test_an_order_survives_tabs_pages_and_opened_arrays(world: World, alice: Browser) -> None:
    now = world.clock()
    many = [job(number, now, state="RUNNING", cpus=number % 3 + 1) for number in range(1, 61)]
    store_jobs(world, *many, *array(100, now, 2, cpus=9))
    page = alice.get("/jobs?sort=-cpus").text
    assert names(page)[:2] == ["array100 (100)", "job59 (59)"]
    (following,) = links(page, "Next")
    assert "sort=-cpus" in following
    rest = names(alice.get(following).text)
    assert len(rest) == 11
    assert not set(rest) & set(names(page))
    (opened,) = links(page, "2 tasks")
    assert names(alice.get(opened).text)[1:3] == ["array100 (100_0)", "array100 (100_1)"]
    assert "/jobs?state=ended&sort=-cpus" in unescape(page)


def test_administrators_see_everybodys(world: World, app: Flask) -> None:
    store_jobs(
        world, job(1, world.clock(), state="RUNNING"), job(2, world.clock(), "bob", state="RUNNING")
    )
    admin = Browser(app).log_in("admin")
    page = admin.get("/jobs?sort=owner").text
    assert names(page) == ["job1 (1)", "job2 (2)"]
    assert "bob's job2 (2)" in unescape(page)
    assert names(admin.get("/jobs?owner=bob").text) == ["job2 (2)"]


def test_names_cannot_contain_markup(world: World, alice: Browser) -> None:
    store_jobs(world, job(1, world.clock(), state="RUNNING", name='"><script>alert(1)</script>'))
    text = alice.get("/jobs").text
    assert "<script>alert" not in text
    assert names(text) == ['"><script>alert(1)</script> (1)']


def test_a_sessions_job_leads_to_its_session(
    world: World, alice: Browser, launched: Callable[..., Runner]
) -> None:
    session = launched("alice", name="notebook1").session
    store_jobs(world, job(int(session.job_id or 0), world.clock(), name=session.id))
    page = alice.get("/jobs?state=pending").text
    assert names(page) == [f"notebook1 ({session.job_id})"]
    assert f'href="/sessions/{session.id}"' in page
    assert 'data-act="cancel"' not in page
    assert names(alice.get("/jobs?state=pending&sessions=no").text) == []


def test_the_number_of_queries_does_not_grow_with_the_rows(world: World, alice: Browser) -> None:
    asked: list[str] = []
    event.listen(world.engine, "before_cursor_execute", lambda *args: asked.append(str(args[2])))

    def queries() -> tuple[int, int]:
        asked.clear()
        rows = names(alice.get("/jobs/rows?state=pending").text)
        return len(rows), len([one for one in asked if one.startswith("SELECT")])

    store_jobs(world, *(job(number, world.clock(), reason="JobHeldUser") for number in (1, 2)))
    alice.get("/jobs")
    _, few = queries()
    many = (job(number, world.clock(), reason="JobHeldUser") for number in range(1, 41))
    store_jobs(world, *many)
    assert queries() == (40, few)


# Acting


def test_without_a_script_a_page_asks_for_confirmation(world: World, alice: Browser) -> None:
    store_jobs(world, job(1, world.clock()), *array(100, world.clock(), 2))
    page = alice.get("/jobs/act/cancel?ids=1&ids=100&ids=1&back=/jobs?q=x").text
    assert "Cancel 2 jobs?" in page
    assert "job1 (1)" in page
    assert 'name="back" value="/jobs?q=x"' in page
    assert "They stop at once" in page
    assert alice.get("/jobs/act/hold").headers["Location"] == "/jobs"
    assert alice.get("/jobs/act/delete?ids=1").status_code == 404
    assert "evil" not in alice.get("/jobs/act/hold?ids=1&back=//evil.example.org").text


def test_the_question_names_owners_and_whole_arrays(world: World, app: Flask) -> None:
    now = world.clock()
    store_jobs(world, job(1, now, "bob"), *array(100, now, 2), job(9, now, "admin"))
    admin = Browser(app).log_in("admin")
    asked = admin.get("/jobs/act/cancel?ids=1&ids=100&ids=100_1&ids=9").text
    questions = asked.partition('class="end-names"')[2].partition("</ul>")[0]
    assert re.findall("<li>([^<]+)</li>", unescape(questions)) == [
        "bob's job1 (1)", "alice's array100 (100), all of its tasks", "alice's array100 (100_1)",
        "job9 (9)",
    ]  # fmt: skip
    listed = admin.get("/jobs?state=pending").text
    assert re.findall('data-called="([^"]+)"', unescape(listed)) == ["job9 (9)", "bob's job1 (1)"]


def test_what_became_of_each_job_is_shown(world: World, alice: Browser) -> None:
    store_jobs(world, job(1, world.clock()), job(2, world.clock(), state="COMPLETED"))
    world.slurm.jobs.append(FakeJob(1, "alice", "job1", "", ""))
    fields = {"ids": ["1", "2"], "back": "/jobs?state=pending"}
    page = alice.post("/jobs/act/cancel", fields)
    assert page.status_code == 200
    assert "1 of 2 jobs was cancelled." in page.text
    assert "Job 2 has ended already." in page.text
    assert 'href="/jobs?state=pending"' in page.text
    answer = alice.post("/jobs/act/cancel?state=pending", {"ids": "2"}, headers=HTMX).text
    assert names(answer) == ["job1 (1)"]
    assert "No job was cancelled." in answer.partition('id="outcomes"')[2]


@pytest.mark.parametrize("action", ["cancel", "hold", "release", "requeue"])
@pytest.mark.parametrize("ids", [["20"], ["1", "20"], ["x"], ["1; id"], ["999"]])
def test_others_jobs_are_like_no_jobs(
    world: World, alice: Browser, action: str, ids: list[str]
) -> None:
    store_jobs(world, job(1, world.clock()), job(20, world.clock(), "bob"))
    before = list(world.slurm.commands)
    query = "&".join(f"ids={one}" for one in ids)
    assert alice.get(f"/jobs/act/{action}?{query}").status_code == 404
    assert alice.post(f"/jobs/act/{action}", {"ids": ids}).status_code == 404
    assert world.slurm.commands == before


@pytest.mark.parametrize("ids", [[], [str(number) for number in range(501)]])
def test_too_few_and_too_many_jobs_are_refused(alice: Browser, ids: list[str]) -> None:
    answer = alice.post("/jobs/act/cancel", {"ids": ids})
    assert answer.status_code == 422
    assert "name 1 to 500 jobs" in answer.text


def test_the_list_contains_no_secret(world: World, alice: Browser) -> None:
    store_jobs(world, job(1, world.clock(), state="RUNNING"))
    assert "csrf" not in alice.get("/jobs/rows").text


def test_both_pages_are_in_the_navigation(alice: Browser) -> None:
    text = alice.get("/jobs").text
    assert re.search(r'<a href="/jobs" aria-current="page">', text)
    assert re.search(r'<a href="/sessions">', text)
    assert "Administration" not in text


def test_of_many_accounts_the_whole_name_is_typed(
    world: World, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"a{number:03}" for number in range(101)]
    monkeypatch.setattr(JobListView, "accounts", names)
    store_jobs(world, job(7, world.clock(), account="a007"), job(8, world.clock(), account="a008"))
    page = alice.get("/jobs?state=pending&account=A007").text
    assert re.search(
        r'<input [^>]*id="filter-account"[^>]*placeholder="Account: the whole name"', page
    )
    assert re.findall('data-id="([0-9]+)"', page) == ["7"]
