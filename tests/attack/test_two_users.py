"""Two users act at random on the real cluster: neither has access to the other's private app.

Short; tests/unit/web/gate/test_views_two_users.py does the same with many steps.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.attack.app_access import PUBLIC_APP, free_ports, link
from tests.support.client import TIMEOUT, Api, Visitor

APP = "webapp"
PEOPLE = st.sampled_from(("alice", "bob"))


class TwoUsers(RuleBasedStateMachine):
    """Each has one session with a web app that serves its owner's word."""

    people: ClassVar[dict[str, Api]]

    def __init__(self) -> None:
        super().__init__()
        self.session: dict[str, str] = {}
        self.word: dict[str, str] = {}
        self.links: list[tuple[str, str]] = []
        self.visitors: list[tuple[str, Visitor]] = []
        self.public = {"alice": False, "bob": False}
        for name in self.people:
            self._launch(name)
        self.ports = free_ports(self.people["bob"], self.session["bob"], APP)[:3]

    def _launch(self, name: str) -> None:
        self.session[name] = self.people[name].running(resources={"cpus": 1, "memory": "300m"})[
            "id"
        ]
        self.word[name] = f"{name}-{uuid.uuid4().hex}"
        self.public[name] = False
        command = PUBLIC_APP.format(word=self.word[name])
        link(self.people[name], self.session[name], APP, asked=command)

    @rule(
        name=PEOPLE,
        port=st.none() | st.integers(0, 2),
        public=st.sampled_from((None, True, False)),
    )
    def click(self, name: str, port: int | None, public: bool | None) -> None:
        """Open the app: with a preferred port, public, or neither."""
        options = {} if port is None else {"preferred_port": self.ports[port]}
        more = {} if public is None else {"public": public}
        answer = link(self.people[name], self.session[name], APP, **options, **more)
        self.public[name] = answer["public"]
        self.links.append((name, answer["url"]))

    @precondition(lambda self: self.links)
    @rule(data=st.data())
    def enter(self, data: st.DataObject) -> None:
        """Use any earlier link."""
        name, url = data.draw(st.sampled_from(self.links))
        visitor = Visitor(url)
        visitor.http.get(url, timeout=TIMEOUT, allow_redirects=False)
        self.visitors.append((name, visitor))

    @rule(name=PEOPLE)
    def close(self, name: str) -> None:
        """The owner closes the app."""
        answer = self.people[name]("DELETE", f"/sessions/{self.session[name]}/apps/{APP}")
        assert answer.status_code == 204
        self.public[name] = False

    @rule(name=PEOPLE)
    def end_and_relaunch(self, name: str) -> None:
        """The next session of the same image."""
        self.people[name].clean()
        self._launch(name)

    @invariant()
    def nobody_has_access_to_anothers_private_app(self) -> None:
        """Checks every cookie ever issued, at its origin, through the real HAProxy."""
        for name, visitor in self.visitors:
            text = visitor.get("/", allow_redirects=False).text
            for owner, word in self.word.items():
                if word in text:
                    assert owner == name or self.public[owner], (owner, name)

    def teardown(self) -> None:
        """End all sessions."""
        for api in self.people.values():
            api.clean()


def test_nobody_has_access_to_anothers_private_app(alice: Api, bob: Api) -> None:
    """C1, H1: any order of open, move, publish, close, enter, end, relaunch."""
    TwoUsers.people = {"alice": alice, "bob": bob}
    run_state_machine_as_test(
        TwoUsers,
        settings=settings(
            max_examples=2,  # Hypothesis's simplest, and a random one
            stateful_step_count=16,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
