"""Valid launch requests; every wrong field is named."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from portal.core.launch.environment import NAME, variable_problem
from portal.core.launch.names import names_for, readable_name
from portal.core.launch.request import LaunchRequest, parse_launch
from portal.core.units import MIN_MEMORY_MB, format_size, parse_size
from portal.errors import InvalidRequest, clip
from tests.support.sessions import VALID_REQUEST


def wrong_fields(data: object) -> set[str]:
    """The fields named by the error."""
    with pytest.raises(InvalidRequest) as caught:
        parse_launch(data)
    assert all(error.message for error in caught.value.errors)
    return {error.field for error in caught.value.errors}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("environment", ""),
        ("environment", None),
        ("environment", "../etc"),
        ("environment", "python\n"),
        ("environment", ["python"]),
        ("version", "3.13; rm -rf /"),
        ("version", 3.13),
        ("name", "abc"),
        ("name", "a" * 65),
        ("name", "my session"),
        ("name", "name\n"),
        ("resource_group", "main,other"),
        ("resource_group", "-p"),
        ("time_limit", 0),
        ("time_limit", "60 seconds"),
        ("time_limit", 1.5),
        ("time_limit", True),
        ("resources", None),
        ("resources", "1"),
        ("resources.cpus", 0),
        ("resources.cpus", -1),
        ("resources.cpus", "1"),
        ("resources.cpus", 1.0),
        ("resources.cpus", True),
        ("resources.cpus", 10**30),
        ("resources.memory", 600),
        ("resources.memory", "600"),
        ("resources.memory", "-1g"),
        ("resources.memory", "1m"),
        ("resources.memory", "1e3g"),
        ("resources.memory", "NaNg"),
        ("resources.memory", "٣g"),
        ("resources.memory", "999999999t"),
        ("resources.gpu", 1),
        ("resources.shared_memory", "601m"),
        ("resources.shared_memory", "0m"),
        ("resources.shared_memory", 64),
        ("resources.shared_memory", "-1m"),
        ("count", 0),
        ("count", 21),
        ("count", "2"),
        ("count", True),
        ("count", 1.0),
        ("env", []),
        ("env", "A=b"),
        ("env", None),
        ("env", {f"N{n}": "" for n in range(101)}),
        ("env.A", {"A": 1}),
        ("env.A", {"A": None}),
        ("env.A", {"A": "\0"}),
        ("env.A", {"A": "x" * 4097}),
        ("env.A", {"A": "ä" * 2049}),
        ("env.A", {"A": "\ud800"}),
        ("env.1A", {"1A": "x"}),
        ("env.", {"": "x"}),
        ("env.A B", {"A B": "x"}),
        ("env.A\n", {"A\n": "x"}),
        ("env.Ä", {"Ä": "x"}),
        ("env." + "A" * 39 + "…", {"A" * 129: "x"}),
        ("env.HOME", {"HOME": "/"}),
        ("env.LD_PRELOAD", {"LD_PRELOAD": "x.so"}),
        ("env.SLIPWAY_SOCKET", {"SLIPWAY_SOCKET": "x"}),
        ("env.APPTAINERENV_X", {"APPTAINERENV_X": "x"}),
        ("env.SINGULARITY_BIND", {"SINGULARITY_BIND": "/"}),
        ("env.SLURM_JOB_ID", {"SLURM_JOB_ID": "1"}),
        ("env.BASH_ENV", {"BASH_ENV": "x"}),
        ("colour", "red"),
        ("__class__", "x"),
    ],
)
def test_each_wrong_field_is_named(field: str, value: object) -> None:
    data: dict[str, Any] = {**VALID_REQUEST, "resources": dict(VALID_REQUEST["resources"])}
    outer, _, inner = field.partition(".")
    if outer == "env":
        data[outer] = value
    elif inner:
        data[outer][inner] = value
    else:
        data[outer] = value
    assert wrong_fields(data) == {field}


def test_a_numbered_name_must_still_be_a_name() -> None:
    assert wrong_fields({**VALID_REQUEST, "name": "a" * 63, "count": 10}) == {"name"}
    assert parse_launch({**VALID_REQUEST, "name": "a" * 63, "count": 9}).count == 9
    for count in range(1, 21):
        for name in ("a" * 62, None):
            for made in names_for(name, count, 12345):
                assert parse_launch({**VALID_REQUEST, "name": made}).name == made
    assert names_for("many", 3, 0) == ["many1", "many2", "many3"]
    assert len(set(names_for(None, 20, 77))) == 20


WORDS = st.text(st.sampled_from("ABZaz_019"), min_size=1, max_size=130)


@given(st.dictionaries(WORDS | st.text(max_size=5), st.text(max_size=5000), max_size=4))
@example({"[key]": ""})
@example({"[key]": "\0"})
@example({"0" * 41: ""})
@example({"A" * 129: ""})
def test_variables_are_accepted_unchanged_or_named(env: dict[str, str]) -> None:
    wrong = {
        name
        for name, value in env.items()
        if not re.fullmatch(NAME, name)
        or variable_problem(name)
        or "\0" in value
        or len(value.encode()) > 4096
    }
    if wrong:
        # Errors repeat the whole name if it is plain and short enough to be a variable's.
        plain = re.compile(r"[A-Za-z0-9_]{1,128}")
        named = {name if plain.fullmatch(name) else clip(name) for name in wrong}
        assert wrong_fields({**VALID_REQUEST, "env": env}) == {f"env.{name}" for name in named}
    else:
        assert parse_launch({**VALID_REQUEST, "env": env}).env == env


@pytest.mark.parametrize("name", ["PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "OMP_NUM_THREADS", "_"])
def test_common_variables_are_allowed(name: str) -> None:
    assert parse_launch({**VALID_REQUEST, "env": {name: ""}}).env == {name: ""}


@given(st.integers(1, 700))
def test_shared_memory_is_inside_memory(size: int) -> None:
    asked = {**VALID_REQUEST, "resources": {"memory": "600m", "shared_memory": f"{size}m"}}
    if size > 600:
        assert wrong_fields(asked) == {"resources.shared_memory"}
    else:
        assert parse_launch(asked).resources.shared_memory == size


def test_all_wrong_fields_at_once() -> None:
    assert wrong_fields({"name": "x", "resources": {"cpus": 0}}) == {
        "environment",
        "name",
        "resources.cpus",
        "resources.memory",
    }


@pytest.mark.parametrize("data", [None, [], "x", 1])
def test_a_body_that_is_not_an_object(data: object) -> None:
    assert wrong_fields(data) == {"body"}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    st.sampled_from(sorted(LaunchRequest.model_fields)),
)
def test_any_input_is_accepted_or_refused_without_a_crash(value: object, field: str) -> None:
    try:
        request = parse_launch({**VALID_REQUEST, field: value})
    except InvalidRequest as refused:
        assert refused.errors
    else:
        assert parse_launch(request.model_dump()) == request


@given(st.integers(MIN_MEMORY_MB, 10**7))
def test_sizes_survive_formatting_and_parsing(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("text", "size"),
    [("600m", 600), ("2g", 2048), ("1.5G", 1536), ("2 GiB", 2048), ("1T", 1 << 20)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@given(st.integers(0, 2**32 - 1))
def test_random_names_are_valid_names(number: int) -> None:
    assert parse_launch({**VALID_REQUEST, "name": readable_name(number)}).name
