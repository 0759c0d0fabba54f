"""Every operation of the OpenAPI document with nearly valid bodies.

test_schema.py sends what the document describes; here a valid body is changed in one or two places,
by values that users and attackers really send, and the state is compared before and after.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.web.api.openapi import document
from tests.support.fakes import World
from tests.support.invalid_inputs import LAUNCH, TEMPLATE
from tests.unit.web.conftest import PORTAL, Api, Runner
from tests.unit.web.judge import judge_api, state

SPEC = document(PORTAL)
RIGHT: dict[str, Any] = {
    "LaunchRequest": {
        **LAUNCH,
        "name": "fuzzed",
        "count": 2,
        "mounts": ["home", {"folder": "data", "read_only": True}],
        "env": {"A": "b"},
        "time_limit": 60,
    },
    "TemplateRequest": TEMPLATE | {"description": "x", "place": 3, "time_limit": 5},
    "ImageRequest": {"seen_by": "some", "accounts": ["research"], "users": ["bob"]},
    "CapsRequest": {"max_shared_memory": "1g", "idle_minutes": 60, "idle_warning": 5},
}
"""Accepted bodies, for schemas whose random values are rarely valid."""
JUNK: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(
        [
            None, True, 0, -1, 10**9, 10**40, 0.5, 1e308, "", " ", "x", "x" * 5000, "\0", "\u202e",
            "é" * 70, [], {}, [0] * 900, [[[]]], {"a": {"b": {"c": 1}}}, "1G\n", "9999t", "../..",
            {f"k{n}": n for n in range(700)}, "Value", "💥", ["home"] * 25, "' OR 1=1 --",
        ]
    ),
    st.text(max_size=20),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip


def _generated(schema: Any) -> st.SearchStrategy[Any]:
    """Values described by a schema of the document; patterns and bounds included."""
    if "$ref" in schema:
        return _generated(SPEC["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "properties" not in schema and "anyOf" in schema:
        return st.one_of([_generated(part) for part in schema["anyOf"]])
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return st.one_of([_of_kind(one, schema) for one in kinds])


def _of_kind(kind: str | None, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    least, most = schema.get("minimum"), schema.get("maximum")
    match kind:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(least, most)
        case "number":
            return st.floats(least or 0, most, allow_nan=False, allow_infinity=False)
        case "string" if "pattern" in schema:
            return st.from_regex(schema["pattern"].removesuffix("$") + r"\Z")
        case "string":
            return st.text(max_size=min(schema.get("maxLength", 30), 100))
        case "array":
            return st.lists(_generated(schema["items"]), max_size=min(schema.get("maxItems", 3), 5))
        case "object" if "properties" in schema:
            needed = schema.get("required", [])
            parts = {name: _generated(part) for name, part in schema["properties"].items()}
            return st.fixed_dictionaries(
                {name: part for name, part in parts.items() if name in needed},
                optional={name: part for name, part in parts.items() if name not in needed},
            )
        case "object":
            names = _generated({"type": "string", **schema.get("propertyNames", {})})
            return st.dictionaries(names, _generated(schema["additionalProperties"]), max_size=3)
    raise AssertionError(f"no values for {schema}")


def _operations() -> Iterator[tuple[str, str, str]]:
    """Method, path and schema of every operation; "" for those without a body."""
    for path, methods in SPEC["paths"].items():
        for method, operation in methods.items():
            if method in ("post", "put", "patch", "delete") and path != "/tokens":
                body = operation.get("requestBody", {}).get("content", {})
                ref = body.get("application/json", {}).get("schema", {}).get("$ref", "")
                yield method.upper(), path, ref.rpartition("/")[2]


def _bodies(name: str) -> st.SearchStrategy[Any]:
    if not name:
        return st.just({})
    made = _generated(SPEC["components"]["schemas"][name])
    return st.just(RIGHT[name]) | made if name in RIGHT else made


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = dict(enumerate(value)) if isinstance(value, list) else value
    for key, inner in inside.items() if isinstance(inside, dict) else ():
        yield from _places(inner, (*path, key))


@st.composite
def nearly(draw: st.DrawFn, schema: str) -> Any:
    """A body of this schema that was changed in up to two places."""
    body = copy.deepcopy(draw(_bodies(schema)))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.sampled_from(list(_places(body))[:40]))
        if not place:
            if isinstance(body, dict) and draw(st.integers(0, 3)):
                body[draw(st.sampled_from(["x", "", "__proto__", "é", "uid", "\0"]))] = (
                    copy.deepcopy(draw(JUNK))
                )
            else:
                body = copy.deepcopy(draw(JUNK))
            continue
        holder = body
        for key in place[:-1]:
            holder = holder[key]
        if draw(st.integers(0, 4)) or not isinstance(holder, dict):
            holder[place[-1]] = copy.deepcopy(draw(JUNK))
        else:
            del holder[place[-1]]
    return body


@pytest.fixture
def full(world: World, api: Callable[[str], Api], launched: Callable[..., Runner]) -> str:
    """A portal with a session, a preset, a folder and a template; the session's id."""
    runner = launched("admin")
    assert runner.ready().status_code == 200
    world.slurm.files["/home/admin/storage/data/"] = b""
    admin = api("admin")
    assert admin("PUT", "/presets/known", json=LAUNCH).status_code == 201
    assert admin("PUT", "/admin/templates/known", json=TEMPLATE).status_code == 200
    return runner.session.id


@pytest.mark.parametrize(("method", "path", "schema"), list(_operations()))
@settings(max_examples=8, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nearly_valid_bodies(
    method: str,
    path: str,
    schema: str,
    data: st.DataObject,
    world: World,
    api: Callable[[str], Api],
    full: str,
) -> None:
    body = data.draw(nearly(schema))
    place = path.format(
        session_id=full, app="terminal", name="known", environment="python", version="3.13",
        token_id="0" * 16, login_id="0" * 16, key_id="0" * 16, job_id="1",
        registry="registry.example.org", location="home/fuzzed", area="home", operation_id="x",
        upload_id="x", folder="data", kind="user", id="0" * 16,
    )  # fmt: skip
    before = state(world)
    who = api(data.draw(st.sampled_from(["admin", "alice"])))
    answer = who(method, place, data=json.dumps(body), content_type="application/json")
    judge_api(answer, before, world)
