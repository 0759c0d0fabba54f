"""A launch can be restored completely: from a session, a preset, and the form's fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import MultiDict

from portal.core.launch.environment import variable_problem
from portal.core.launch.request import LaunchRequest, parse_launch
from portal.core.session.relaunch import session_to_request_body, to_request_body
from portal.core.session.session import Session, State
from portal.core.units import MIN_MEMORY_MB, format_size
from portal.web.pages.launch.form import MOUNT, READ_ONLY, FormValues, from_body, to_body

WORDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}", fullmatch=True)
VARIABLES = st.from_regex(r"[A-Z][A-Z0-9_]{0,9}", fullmatch=True).filter(
    lambda n: not variable_problem(n)
)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """A launch as an API client sends it."""
    memory = draw(st.integers(MIN_MEMORY_MB, 2**22))
    resources: dict[str, Any] = {
        "cpus": draw(st.integers(1, 4096)),
        "memory": format_size(memory),
        "shared_memory": draw(st.none() | st.integers(1, memory).map(format_size)),
    }
    folders = draw(st.lists(WORDS, max_size=4, unique=True))
    return {
        "environment": draw(WORDS),
        "version": draw(WORDS),
        "name": draw(st.none() | st.from_regex(r"[A-Za-z0-9]{4,20}", fullmatch=True)),
        "resource_group": draw(st.none() | WORDS),
        "resources": resources,
        "time_limit": draw(st.none() | st.integers(1, 525_600)),
        "count": draw(st.integers(1, 20)),
        "mounts": [{"folder": name, "read_only": draw(st.booleans())} for name in folders],
        "env": draw(st.dictionaries(VARIABLES, VALUES, max_size=4)),
    }


def fields(entered: FormValues) -> MultiDict[str, str]:
    """The fields that a browser sends if the form contains this."""
    sent = MultiDict(entered.values)
    for folder, read_only in entered.mounts.items():
        sent.add(MOUNT, folder)
        if read_only:
            sent.add(READ_ONLY, folder)
    return sent


@given(bodies())
def test_a_request_is_restored_completely(body: dict[str, Any]) -> None:
    request = parse_launch(body)
    assert parse_launch(to_request_body(request)) == request


@given(bodies())
def test_the_form_returns_its_initial_values(body: dict[str, Any]) -> None:
    request = parse_launch(body)
    assert parse_launch(to_body(fields(from_body(to_request_body(request))))) == request


@given(bodies())
def test_a_session_returns_its_request(body: dict[str, Any]) -> None:
    request = parse_launch(body | {"count": 1})
    session = created_by(request)
    assert parse_launch(session_to_request_body(session, request.env)) == request


def test_a_generated_name_is_not_launched_again() -> None:
    session = created_by(parse_launch({"environment": "python", "resources": {"memory": "1g"}}))
    assert session.name
    assert "name" not in session_to_request_body(session, {})
    named = session.model_copy(update={"named": True})
    assert session_to_request_body(named, {})["name"] == session.name


NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def created_by(request: LaunchRequest) -> Session:
    """The session that a launch creates from a request."""
    return Session(
        id="0" * 32,
        owner="alice",
        state=State.PENDING,
        created=NOON,
        submitted=NOON,
        token_hash="",
        name=request.name or "amberotter12",
        named=request.name is not None,
        environment=request.environment,
        version=request.version or "",
        cpus=request.resources.cpus,
        memory_mb=request.resources.memory,
        shared_memory_mb=request.resources.shared_memory,
        partition=request.resource_group,
        time_limit=request.time_limit,
        mounts=request.mounts,
        env_names=tuple(request.env),
    )
