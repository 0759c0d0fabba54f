"""The launch form's further fields: kept, reported if invalid, and submitted as one object."""

from __future__ import annotations

import html
import json
import re

import pytest

from tests.support.fakes import World
from tests.support.launch_pages import LAUNCH_FORM
from tests.unit.web.conftest import Browser

HTMX = {"HX-Request": "true"}


def test_they_reach_the_job(world: World, alice: Browser) -> None:
    more = {"count": "3", "env": '{"A": "b c"}', "resources.shared_memory": "64 MB"}
    answer = alice.post("/sessions", LAUNCH_FORM | more | {"name": "many"}, headers=HTMX)
    assert answer.status_code == 204
    assert len(world.slurm.jobs) == 3
    assert json.loads(world.slurm.jobs[2].spec)["env"] == {"A": "b c"}
    assert "0.06 GB shared" in alice.get("/sessions").text
    assert "b c" not in alice.get("/sessions/rows").text


def test_variables_without_javascript_are_lines(world: World, alice: Browser) -> None:
    lines = {"env": '{"OLD": "x"}', "env_lines": 'A=1\r\nexport B="b c"\r\n'}
    assert alice.post("/sessions", LAUNCH_FORM | lines).status_code == 303
    assert json.loads(world.slurm.jobs[0].spec)["env"] == {"A": "1", "B": "b c"}
    refused = alice.post("/sessions", LAUNCH_FORM | {"env_lines": "A=1\nMY DATA"})
    assert refused.status_code == 422
    assert "rite line 2 as NAME=value" in refused.text
    assert ">A=1\nMY DATA</textarea>" in refused.text
    assert len(world.slurm.jobs) == 1
    again = alice.post("/sessions/new", LAUNCH_FORM | {"env": '{"A": "b c"}'})
    assert ">A=b c</textarea>" in again.text


BAD = [
    ("count", "0"),
    ("count", "21"),
    ("count", "two"),
    ("resources.shared_memory", "601 MB"),
    ("resources.shared_memory", "much"),
    ("env", "A=b"),
    ("env", "[1]"),
    ("env", '{"A": "x", "A": "y"}'),
    ("env", "[" * 5000),
    ("env", '{"HOME": "/root"}'),
    ("env", '{"A B": "x"}'),
    ("env", '{"A": 7}'),
]


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize(("field", "value"), BAD)
def test_errors_are_shown_at_the_field_and_input_is_kept(
    world: World, alice: Browser, field: str, value: str, headers: dict[str, str]
) -> None:
    answer = alice.post("/sessions", LAUNCH_FORM | {field: value}, headers=headers)
    assert answer.status_code == 422
    name = field.replace(".", "-")
    assert f'id="error-{name}"' in answer.text
    assert f'aria-describedby="error-{name}"' in answer.text
    assert f'data-first="{"environment" if field == "env" else "resources"}"' in answer.text
    assert value in html.unescape(answer.text)
    assert world.slurm.jobs == []
    assert world.store.live() == []


def test_a_refused_variable_is_named(alice: Browser) -> None:
    env = json.dumps({"HOME": "/", "GOOD": "x", "1ST": "y"})
    answer = alice.post("/sessions", LAUNCH_FORM | {"env": env}, headers=HTMX)
    error = re.search(r'id="error-env">.*?</i> (.*?)</p>', answer.text, re.DOTALL)
    assert error
    assert "HOME cannot be set: it is set by Slipway" in error[1]
    assert "1ST: " in error[1]
    assert "HOME, GOOD, 1ST" in answer.text
