"""What pages poll is rendered again only when something that they show has changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from flask import Flask
from sqlalchemy import event
from werkzeug.test import TestResponse

from portal.core.cluster.usage import Capacity, ClusterUsage
from portal.core.monitoring import WORKER
from portal.core.session.session import LIVE
from portal.core.session.status import ENDS_SOON
from portal.core.session_job.runner_protocol import Heartbeat
from portal.errors import DatabaseFull, DatabaseUnavailable
from portal.store.jobs.store import JobStore
from portal.web.http.unchanged import VISIBLE
from tests.support.fakes import World
from tests.support.job_store import queued_job
from tests.support.sessions import USAGE_REPORT
from tests.support.transactions import transactions
from tests.unit.web.conftest import Api, Browser, Runner

ROWS = "/sessions/rows"


class Tab:
    """A tab that polls as client/common/poll.js does."""

    def __init__(self, browser: Browser, world: World, path: str) -> None:
        self.browser, self.world, self.path = browser, world, path
        self.mark, self.visible, self.hidden = "", False, False
        self.poll()

    def poll(self) -> TestResponse:
        """Poll once."""
        headers = {"If-None-Match": self.mark} | ({VISIBLE: "1"} if self.visible else {})
        headers |= {"Slipway-Hidden": "yes"} if self.hidden else {}
        answer = self.browser.get(self.path, headers=headers)
        if etag := answer.headers.get("ETag"):
            self.mark = etag.strip('"')
        return answer

    def is_quiet(self) -> bool:
        """Whether a poll costs one transaction, and shows nothing new."""
        with transactions(self.world) as begun:
            answer = self.poll()
        assert answer.status_code in (200, 204)
        return answer.status_code == 204 and begun == ["read"]


@pytest.fixture
def runner(launched: Callable[..., Runner]) -> Runner:
    """A running session of alice's."""
    started = launched()
    assert started.ready().status_code == 200
    return started


@pytest.fixture
def tab(alice: Browser, world: World, runner: Runner) -> Tab:
    """Alice's list."""
    return Tab(alice, world, ROWS)


@pytest.mark.parametrize("path", [ROWS, "/sessions/{id}/now", "/jobs/rows"])
def test_nothing_has_changed(path: str, alice: Browser, world: World, runner: Runner) -> None:
    tab = Tab(alice, world, path.format(id=runner.session.id))
    assert tab.is_quiet()
    assert tab.is_quiet()
    world.clock.advance(seconds=61)
    assert not tab.is_quiet(), "some content depends on the time"
    assert tab.is_quiet()


def pause_of(runner: Runner) -> float:
    """Seconds until the runner's next report, as the portal asks."""
    calls = runner.world.services.runner_calls
    session = calls.authenticate(runner.session.id, runner.token)
    return calls.record_usage(session, Heartbeat.model_validate(USAGE_REPORT))["next"]


def test_a_visible_page_keeps_its_owners_sessions_reporting(
    tab: Tab, world: World, runner: Runner
) -> None:
    """For as long as it polls; its login expires all the same."""
    tab.visible = True
    before = world.services.logins.logins_of("alice")
    writes = 0
    for _ in range(120):
        world.clock.advance(seconds=10)
        with transactions(world) as begun:
            tab.poll()
        writes += begun.count("write")
        assert pause_of(runner) == 10
    assert 15 <= writes <= 20
    after = world.services.logins.logins_of("alice")
    assert [(login.used, login.expires) for login in after] == [
        (login.used, login.expires) for login in before
    ]


def test_a_hidden_page_and_a_token_do_not(
    tab: Tab, world: World, runner: Runner, api: Callable[[str], Api]
) -> None:
    client = api("alice")
    for _ in range(20):
        world.clock.advance(seconds=10)
        tab.poll()
        client("GET", "/sessions")
    assert pause_of(runner) == 30


def test_a_page_that_is_shown_counts_at_once(tab: Tab, world: World, runner: Runner) -> None:
    world.clock.advance(minutes=10)
    tab.poll()
    assert tab.is_quiet()
    assert pause_of(runner) == 30
    tab.visible = True
    tab.poll()
    assert pause_of(runner) == 10
    assert tab.is_quiet()


def test_a_full_database_refuses_no_poll(
    tab: Tab, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise DatabaseFull

    monkeypatch.setattr(world.systems.stores.logins, "see_login", refuse)
    tab.visible = True
    world.clock.advance(minutes=2)
    assert tab.poll().status_code in (200, 204)


def test_the_first_poll_of_a_page_that_is_up_to_date(alice: Browser, world: World) -> None:
    page = alice.get("/sessions").text
    mark = page.partition('data-mark="')[2].partition('"')[0]
    answer = alice.get(ROWS, headers={"If-None-Match": mark})
    assert answer.status_code == 204
    with transactions(world) as begun:
        etag = answer.headers["ETag"]
        assert alice.get(ROWS, headers={"If-None-Match": etag}).status_code == 204
    assert begun == ["read"]


def test_a_change_of_its_own_is_shown(tab: Tab, api: Callable[[str], Api], runner: Runner) -> None:
    assert api("alice")("DELETE", f"/sessions/{runner.session.id}").status_code in (200, 202)
    answer = tab.poll()
    assert (answer.status_code, "Ending" in answer.text) == (200, True)
    assert tab.is_quiet()


def test_others_changes_are_shown_to_administrators_only(
    app: Flask, world: World, tab: Tab, launched: Callable[..., Runner]
) -> None:
    admin = Tab(Browser(app).log_in("admin"), world, ROWS)
    bob = Tab(Browser(app).log_in("bob"), world, ROWS)
    assert bob.is_quiet()
    assert admin.is_quiet()
    launched()
    assert bob.is_quiet()
    assert not admin.is_quiet()
    assert not tab.is_quiet()


def test_an_app_that_starts_is_shown(tab: Tab, api: Callable[[str], Api], runner: Runner) -> None:
    path = f"/sessions/{runner.session.id}/apps/jupyterlab"
    assert api("alice")("POST", path).status_code == 200
    assert not tab.is_quiet()
    assert tab.is_quiet()
    runner("apps/jupyterlab", {"state": "ready"})
    assert not tab.is_quiet()


def test_a_login_that_was_revoked_is_logged_out_at_once(tab: Tab, world: World) -> None:
    world.services.logins.revoke_all("alice", "admin")
    assert tab.poll().status_code in (303, 401)


def test_the_use_of_the_cluster_waits_a_little_and_jobs_do_not_show_it(
    tab: Tab, alice: Browser, world: World
) -> None:
    jobs = Tab(alice, world, "/jobs/rows")
    world.status.save_use(ClusterUsage(rooms=(Capacity("main", 8, 8000, 4, 4000),)))
    assert tab.is_quiet()
    world.clock.advance(seconds=31)
    assert not tab.is_quiet()
    assert jobs.is_quiet()


@pytest.mark.parametrize(
    "change",
    [
        lambda mark: mark[:-1] + ("0" if mark[-1] != "0" else "1"),
        lambda mark: mark.replace("~alice~", "~bob~"),
        lambda mark: "~",
        lambda mark: f"{mark}~{mark}",
        lambda mark: "~é~",
    ],
)
def test_marks_are_not_believed(tab: Tab, change: Callable[[str], str]) -> None:
    tab.mark = change(tab.mark)
    assert not tab.is_quiet()


def test_a_mark_of_another_release_is_not_read(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.web.http.unchanged._FORM", "1")
    assert not tab.is_quiet()
    assert tab.is_quiet()


def test_a_mark_holds_for_one_address_and_one_login(tab: Tab, bob: Browser, world: World) -> None:
    theirs = Tab(bob, world, ROWS)
    theirs.mark = tab.mark
    assert not theirs.is_quiet()
    mark = tab.mark
    tab.path = f"{ROWS}?state=PENDING"
    assert not tab.is_quiet()
    tab.mark = mark
    assert not tab.is_quiet()


def test_a_database_that_does_not_answer_is_named_as_on_other_pages(tab: Tab, world: World) -> None:
    def refuse(*_: object) -> None:
        raise DatabaseUnavailable

    event.listen(world.engine, "checkout", refuse)
    try:
        answer = tab.poll()
    finally:
        event.remove(world.engine, "checkout", refuse)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "15")
    assert "database does not answer" in answer.text
    assert tab.is_quiet()


def test_a_worker_that_stops_and_comes_back_is_shown_at_once(tab: Tab, world: World) -> None:
    stores = world.systems.stores
    stores.heartbeats.beat(WORKER, world.clock.now)
    world.status.note_answer(world.clock.now)
    tab.poll()
    assert tab.is_quiet()
    world.clock.advance(seconds=16)
    assert "UNKNOWN" in tab.poll().text
    assert tab.is_quiet()
    stores.heartbeats.beat(WORKER, world.clock.now)
    world.status.note_answer(world.clock.now)
    assert "RUNNING" in tab.poll().text
    assert tab.is_quiet()


def test_a_worker_that_is_back_is_not_said_to_be_down(
    tab: Tab, alice: Browser, world: World
) -> None:
    beats = world.systems.stores.heartbeats
    beats.beat(WORKER, world.clock.now)
    world.status.note_answer(world.clock.now)
    jobs = Tab(alice, world, "/jobs/rows")
    assert jobs.is_quiet()
    world.clock.advance(seconds=13)
    assert "worker-down" in jobs.poll().text
    beats.beat(WORKER, world.clock.now)
    answer = jobs.poll()
    assert (answer.status_code, "worker-down" in answer.text) == (200, False)


def test_a_place_in_the_queue_is_at_most_ten_seconds_old(alice: Browser, world: World) -> None:
    jobs = JobStore(world.engine)
    jobs.save([queued_job(1, priority=5, reason="Priority")], world.clock.now)
    tab = Tab(alice, world, "/jobs/rows?state=pending")
    page = Tab(alice, world, "/jobs/1/now")
    jobs.save([queued_job(2, user="bob", priority=9, reason="Priority")], world.clock.now)
    assert tab.is_quiet()
    world.clock.advance(seconds=11)
    assert "1 ahead of it" in tab.poll().text
    assert "1 ahead of it" in page.poll().text
    assert tab.is_quiet()
    others = [queued_job(3 + n, user="bob", priority=9, reason="Priority") for n in range(10)]
    jobs.save(others, world.clock.now)
    world.clock.advance(seconds=11)
    assert "11 ahead of it" in tab.poll().text
    world.clock.advance(seconds=29)
    assert tab.is_quiet()
    world.clock.advance(seconds=2)
    assert not tab.is_quiet()


def test_a_node_that_is_silent_is_shown_in_time(tab: Tab, world: World, runner: Runner) -> None:
    world.clock.advance(seconds=70)
    tab.poll()
    assert tab.is_quiet()
    world.clock.advance(seconds=6)
    assert "The node has not reported since" in tab.poll().text
    assert tab.is_quiet()
    pause_of(runner)
    text = tab.poll().text
    assert text
    assert "The node has not reported since" not in text


def test_the_warning_of_an_end_comes_in_time(tab: Tab, world: World, runner: Runner) -> None:
    deadline = world.clock.now + ENDS_SOON + timedelta(seconds=5)
    world.store.change(runner.session.id, LIVE, deadline=deadline)
    assert "ending-" not in tab.poll().text
    assert tab.is_quiet()
    world.clock.advance(seconds=6)
    assert "ending-" in tab.poll().text
    assert tab.is_quiet()


def test_a_hidden_page_is_rendered_for_changes_only(
    tab: Tab, world: World, runner: Runner, api: Callable[[str], Api]
) -> None:
    world.status.save_use(ClusterUsage(rooms=(Capacity("main", 8, 8000, 4, 4000),)))
    world.clock.advance(seconds=599)
    tab.hidden = True
    assert tab.is_quiet()
    tab.hidden = False
    assert not tab.is_quiet()
    tab.hidden = True
    api("alice")("DELETE", f"/sessions/{runner.session.id}")
    assert not tab.is_quiet()
    assert tab.is_quiet()
    world.clock.advance(seconds=601)
    assert not tab.is_quiet(), "its login may have expired"
