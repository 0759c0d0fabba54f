"""What runners of sessions that the portal does not know are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from werkzeug.test import TestResponse

from portal.core.auth.person import Person
from portal.core.session.session import State
from portal.node.runner import callback, wire
from tests.support.adoption import follow_queue, lose_sessions
from tests.support.fakes import World
from tests.support.sessions import USAGE_REPORT
from tests.unit.web.conftest import Api, Runner

Launched = Callable[..., Runner]
NAME, VALUE = wire.RUNNER.split(": ")
NEW = {NAME: VALUE}


def code(answer: TestResponse) -> str:
    """What a problem document says for programs."""
    assert answer.json is not None
    return str(answer.json["code"])


def is_ready(runner: Runner) -> bool:
    """Whether the portal knows where its gateway is."""
    answer = runner("usage", USAGE_REPORT, **NEW)
    assert answer.json is not None
    return bool(answer.json["ready"])


def adopt(runner: Runner, **changes: Any) -> Any:
    about = json.loads(runner.job.spec)["adoption"]["about"]
    body = {"job_id": str(runner.job.id), "node": "n1", "about": about} | changes
    return runner("adopt", body, **NEW)


@pytest.mark.parametrize("path", ["ready", "usage", "apps/terminal", "progress", "authorities"])
def test_an_unknown_session_is_not_an_ended_one(
    world: World, launched: Launched, path: str
) -> None:
    runner = launched()
    lose_sessions(world, runner.session)
    answer = runner(path, USAGE_REPORT, **NEW)
    assert (answer.status_code, code(answer)) == (404, callback.UNKNOWN_CODE)
    with pytest.raises(callback.SessionUnknown):
        callback.read_answer(answer.status_code, answer.data)
    # An earlier release's runner ends its session on 404, and waits on 503.
    assert runner(path, USAGE_REPORT).status_code == 503


def test_an_ended_session_is_told_so(world: World, launched: Launched) -> None:
    runner = launched()
    world.sessions.stop(Person("alice", False, "x"), runner.session.id)
    for headers in ({}, NEW):
        answer = runner("usage", USAGE_REPORT, **headers)
        assert (answer.status_code, code(answer)) == (410, callback.ENDED_CODE)
        with pytest.raises(callback.SessionOver):
            callback.read_answer(answer.status_code, answer.data)
    wrong = runner("usage", USAGE_REPORT, Authorization="Bearer wrong", **NEW)
    with pytest.raises(callback.SessionUnknown):
        callback.read_answer(wrong.status_code, wrong.data)
    assert adopt(runner).status_code == 410


def test_a_lost_session_comes_back_to_its_owner(
    world: World, launched: Launched, api: Callable[[str], Api]
) -> None:
    runner = launched(name="careful")
    runner.ready()
    lose_sessions(world, runner.session)
    assert adopt(runner).json == {}
    assert not is_ready(runner)
    assert runner.ready().status_code == 200
    assert is_ready(runner)
    (found,) = api("alice")("GET", "/sessions").json["sessions"]  # type: ignore[index]
    assert (found["id"], found["name"], found["state"]) == (
        runner.session.id,
        "careful",
        State.RUNNING,
    )
    assert api("bob")("GET", "/sessions").json["sessions"] == []  # type: ignore[index]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"job_id": "1; id"}, "job_id"),
        ({"node": "n1\n"}, "node"),
        ({"about": []}, "about"),
        ({"owner": "bob"}, "owner"),
    ],
)
def test_invalid_requests_name_their_field(
    world: World, launched: Launched, changes: dict[str, object], field: str
) -> None:
    runner = launched()
    lose_sessions(world, runner.session)
    answer = adopt(runner, **changes)
    assert answer.status_code == 422
    assert field in [error["field"] for error in answer.json["errors"]]
    assert world.store.live() == []


def test_strangers_learn_nothing(world: World, launched: Launched) -> None:
    """The answer for a job that is there is the one for a job that is not."""
    runner = launched()
    runner.ready()
    lose_sessions(world, runner.session)
    follow_queue(world)
    answers = [
        runner("adopt", {"job_id": number, "node": "n1"}, Authorization="Bearer guess", **NEW)
        for number in (str(runner.job.id), "999")
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert answers[0].data == answers[1].data
