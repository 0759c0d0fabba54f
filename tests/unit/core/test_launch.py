"""What may be asked for; every wrong field is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.launch import MIN_MEMORY_MB, LaunchRequest, format_size, parse_launch, parse_size
from portal.core.names import readable_name
from portal.errors import InvalidRequest

GOOD: dict[str, Any] = {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}


def wrong_fields(data: object) -> set[str]:
    """The fields that the answer names."""
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
        ("name", "naïve"),
        ("name", "name\n"),
        ("resource_group", "main,other"),
        ("resource_group", "-p"),
        ("time_limit", 0),
        ("time_limit", "60"),
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
        ("colour", "red"),
        ("__class__", "x"),
    ],
)
def test_each_wrong_field_is_named(field: str, value: object) -> None:
    data: dict[str, Any] = {**GOOD, "resources": dict(GOOD["resources"])}
    outer, _, inner = field.partition(".")
    if inner:
        data[outer][inner] = value
    else:
        data[outer] = value
    assert wrong_fields(data) == {field}


def test_all_wrong_fields_at_once() -> None:
    assert wrong_fields({"name": "x", "resources": {"cpus": 0}}) == {
        "environment",
        "name",
        "resources.cpus",
        "resources.memory",
    }


@pytest.mark.parametrize("data", [None, [], "x", 1])
def test_something_else_than_an_object(data: object) -> None:
    assert wrong_fields(data) == {""}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    st.sampled_from(sorted(LaunchRequest.model_fields)),
)
def test_whatever_comes_is_taken_or_refused_never_worse(value: object, field: str) -> None:
    try:
        request = parse_launch({**GOOD, field: value})
    except InvalidRequest as refused:
        assert refused.errors
    else:
        assert parse_launch(request.model_dump()) == request


@given(st.integers(MIN_MEMORY_MB, 10**7))
def test_sizes_survive_writing_and_reading(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("text", "size"),
    [("600m", 600), ("2g", 2048), ("1.5G", 1536), ("2 GiB", 2048), ("1T", 1 << 20)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@given(st.integers(0, 2**32 - 1))
def test_random_names_are_valid_names(number: int) -> None:
    assert parse_launch({**GOOD, "name": readable_name(number)}).name
