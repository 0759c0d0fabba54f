"""What pages poll is rendered again only when something that they show has changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask import Flask
from sqlalchemy import event
from werkzeug.test import TestResponse

from portal.core.cluster.usage import Capacity, ClusterUsage
from portal.errors import DatabaseUnavailable
from tests.support.fakes import World
from tests.support.transactions import transactions
from tests.unit.web.conftest import Api, Browser, Runner

ROWS = "/sessions/rows"


class Tab:
    """A tab that polls as client/common/poll.js does."""

    def __init__(self, browser: Browser, world: World, path: str) -> None:
        self.browser, self.world, self.path = browser, world, path
        self.mark = ""
        self.poll()

    def poll(self) -> TestResponse:
        """Poll once."""
        answer = self.browser.get(self.path, headers={"If-None-Match": self.mark})
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
