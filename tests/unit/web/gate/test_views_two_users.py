"""Two users act in any order: nobody ever has access to another user's private app."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from portal.core.apps.access import AppOptions, AppState
from portal.core.apps.origins import Mode
from portal.core.auth.logins import BROWSER
from portal.core.auth.person import Person
from portal.core.launch.request import LaunchRequest
from portal.core.session.session import Session, State
from portal.core.session_job.runner_protocol import ReadyMessage
from portal.errors import Conflict
from tests.support.fakes import World
from tests.support.sessions import REQUEST, token_of
from tests.unit.web.proxied_portal import ProxiedPortal, running_portal

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

APPS = ("terminal", "jupyterlab", "board")
PEOPLE = ("alice", "bob")
LOGINS = ("desk", "phone")
MOST = 3
"""Concurrent sessions: few, so that actions collide."""


@dataclass
class Link:
    """A click's response that has not been used yet."""

    person: Person
    session: str
    app: str
    label: str
    ticket: str
    made: datetime
    good: bool = True


@dataclass
class Cookie:
    """A cookie issued to a browser; here it is never deleted."""

    person: Person
    session: str
    app: str
    label: str
    value: str
    good: bool = True


class TwoUsers(RuleBasedStateMachine):
    """Actions of users and time; the model knows who may have access, HAProxy who has."""

    proxied_portal: ClassVar[ProxiedPortal]
    sessions = Bundle("sessions")
    links = Bundle("links")

    @initialize()
    def begin(self) -> None:
        """A portal without sessions."""
        self.world: World = self.proxied_portal.new_world()
        self.owners: dict[str, str] = {}
        self.cookies: list[Cookie] = []
        self.handed: list[Link] = []
        self.labels: set[str] = set()
        self.secrets: dict[tuple[str, str], str] = {}

    # Actions of users

    @precondition(lambda self: sum(not self._over(one) for one in self.owners) < MOST)
    @rule(target=sessions, owner=st.sampled_from(PEOPLE))
    def launch(self, owner: str) -> str:
        """A session that runs at once; also the next one after one that has ended."""
        request: LaunchRequest = REQUEST
        person = Person(owner, admin=False, login="desk")
        session = self.world.launch(person, request)
        job = self.world.slurm.jobs[-1]
        self.world.slurm.start(job)
        known = self.world.services.runner_calls.authenticate(session.id, token_of(self.world))
        self.world.services.runner_calls.mark_ready(
            known, ReadyMessage(job_id=str(job.id), node="n1", port=40000, csr="csr")
        )
        self.world.store.change(
            session.id, {State.RUNNING}, address="127.0.0.1", port=self.proxied_portal.gateway_port
        )
        self.owners[session.id] = owner
        return session.id

    @rule(
        target=links,
        session=sessions,
        app=st.sampled_from(APPS),
        login=st.sampled_from(LOGINS),
        port=st.none() | st.integers(0, 5),
        public=st.sampled_from((None, None, True, False)),
    )
    def open(
        self, session: str, app: str, login: str, port: int | None, public: bool | None
    ) -> Link | None:
        """A click: with a preferred port, public, or neither."""
        first = (self.proxied_portal.settings.web.pool or (0, 0))[0]
        wish = AppOptions(
            public=public if app == "board" else None, port=None if port is None else first + port
        )
        person = self._person(self.owners[session], login)
        before = self._label(session, app)
        try:
            link = self.world.apps.open_app(person, session, app, wish)
        except Conflict:
            return None
        if before not in ("", link.label) or wish.public is False:
            self._invalidate(session, app, cookies=before not in ("", link.label))
        for server in {app, "jupyterlab" if app == "jupyterlab" else app}:
            self.world.reports.note_app(self._session(session), server, AppState.READY)
        self.labels.add(link.label)
        made = Link(person, session, app, link.label, link.ticket, self.world.clock())
        self.handed.append(made)
        self._trim(session, app)
        return made

    @rule(link=consumes(links))
    def enter(self, link: Link | None) -> None:
        """A user follows a link, however late, whatever is there now."""
        if link is None:
            return
        life = (self.world.clock() - link.made).total_seconds()
        good = link.good and life <= 60
        origin = self.proxied_portal.settings.web.app_url(link.label)
        path = f"/.slipway/enter?ticket={quote(link.ticket)}"
        status, _name, cookies = self.proxied_portal.get(origin, path)
        assert (status == 303) is good, (status, link)
        link.good = False
        ours = [one for one in cookies if one.startswith("slipway_app_")]
        if ours:
            value = ours[0].partition(";")[0].partition("=")[2]
            self.cookies.append(Cookie(link.person, link.session, link.app, link.label, value))

    @rule(session=sessions)
    def click_close_and_follow(self, session: str) -> None:
        """A link whose app its owner has closed meanwhile."""
        link = self.open(session, "terminal", "desk", None, None)
        self.close(session, "terminal")
        self.enter(link)

    @rule(session=sessions, port=st.integers(0, 5))
    def click_move_and_follow(self, session: str, port: int) -> None:
        """A link to an app that has moved meanwhile."""
        link = self.open(session, "terminal", "desk", None, None)
        self.time_passes(11)
        self.open(session, "terminal", "desk", port, None)
        self.enter(link)

    @rule(session=sessions, app=st.sampled_from(APPS))
    def close(self, session: str, app: str) -> None:
        """The owner closes an app."""
        if self._over(session):
            return
        person = Person(self.owners[session], admin=False, login="desk")
        self.world.apps.close_app(person, session, app)
        self._invalidate(session, app)

    @rule(session=sessions)
    def make_private(self, session: str) -> None:
        """The owner makes a public app private."""
        if self._over(session):
            return
        person = Person(self.owners[session], admin=False, login="desk")
        self.world.apps.make_private(person, session, "board")
        self._invalidate(session, "board", cookies=False)

    @rule(session=sessions)
    def end(self, session: str) -> None:
        """The owner ends a session."""
        person = Person(self.owners[session], admin=False, login="desk")
        self.world.sessions.stop(person, session)
        for app in APPS:
            self._invalidate(session, app)

    @precondition(lambda self: self.cookies)
    @rule(person=st.sampled_from(PEOPLE), login=st.sampled_from(LOGINS))
    def log_out(self, person: str, login: str) -> None:
        """One browser's login is revoked; "desk" of two users means two logins."""
        who = self._person(person, login)
        self.world.services.logins.log_out(who)
        for cookie in self.cookies:
            if cookie.person.login == who.login:
                cookie.good = False
        for link in self.handed:
            if link.person.login == who.login:
                link.good = False

    @rule(seconds=st.sampled_from((1, 11, 11, 11, 61, 40 * 24 * 3600)))
    def time_passes(self, seconds: int) -> None:
        """An app may move again, a ticket has expired, or a port may be reassigned."""
        self.world.clock.advance(seconds=seconds)

    @rule()
    def worker_polls(self) -> None:
        """There is nothing to repair."""
        self.world.services.logins.expire()
        self.world.services.logins.revoke_left_over()
        self.world.proxy.retry_revocations()
        assert self.world.proxy.check_routes() == 0

    # Invariants

    @invariant()
    def nobody_has_access_to_anothers_private_app(self) -> None:
        """Try every cookie ever issued at its origin, and every origin without one."""
        if not hasattr(self, "world"):
            return
        for cookie in self.cookies:
            name = f"{self.proxied_portal.settings.web.app_cookie(cookie.label)}={cookie.value}"
            found = self._reached(cookie.label, name)
            expected = self._public(cookie.label)
            if cookie.good:
                expected = f"{cookie.app}.{cookie.session}.slipway"
            assert found == expected, (cookie, found)
        for label in self.labels:
            assert self._reached(label, "") == self._public(label)

    def _reached(self, label: str, cookie: str) -> str:
        origin = self.proxied_portal.settings.web.app_url(label)
        return self.proxied_portal.get(origin, "/whoami", cookie)[1]

    def _public(self, label: str) -> str:
        opened = self.world.access_store.app_by_label(label)
        if opened is None or opened.public_since is None:
            return ""
        return f"{opened.app}.{opened.session}.slipway"

    # The model

    def _person(self, name: str, device: str) -> Person:
        """A user on one of their devices; they log in again if the login has ended."""
        logins = self.world.services.logins
        login = logins.find(self.secrets.get((name, device), ""), BROWSER)
        if login is None:
            self.secrets[name, device], login = logins.open_browser(name)
        return logins.person(login)

    def _session(self, session: str) -> Session:
        found = self.world.store.get(session)
        assert found is not None
        return found

    def _over(self, session: str) -> bool:
        return self._session(session).state is not State.RUNNING

    def _label(self, session: str, app: str) -> str:
        found = (one.label for one in self.world.access_store.apps(session) if one.app == app)
        return next(found, "")

    def _invalidate(self, session: str, app: str, *, cookies: bool = True) -> None:
        for link in self.handed:
            if (link.session, link.app) == (session, app):
                link.good = False
        for cookie in self.cookies if cookies else []:
            if (cookie.session, cookie.app) == (session, app):
                cookie.good = False

    def _trim(self, session: str, app: str) -> None:
        mine = [one for one in self.handed if (one.session, one.app) == (session, app) and one.good]
        for old in mine[:-8]:
            old.good = False


@pytest.fixture(params=["subdomains", "ports"])
def proxied_portal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ProxiedPortal]:
    """HAProxy in each mode."""
    mode: Mode = request.param
    with running_portal(tmp_path, mode) as running:
        yield running


def test_nobody_has_access_to_anothers_private_app(proxied_portal: ProxiedPortal) -> None:
    """C1, H1, L10, M1: the invariant, checked through the real HAProxy after every step."""
    TwoUsers.proxied_portal = proxied_portal
    run_state_machine_as_test(
        TwoUsers,
        settings=settings(
            max_examples=12,
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
        ),
    )
