"""Names of sessions: made from titles, and distinct from those in use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.launch.names import (
    MAX_NAME,
    distinct_names,
    is_generated,
    name_from,
    names_for,
    readable_name,
    session_name,
)

NAMES = st.from_regex(r"[A-Za-z0-9]{4,64}", fullmatch=True)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("small python", "smallPython"),
        ("PyTorch 2.1 big", "PyTorch21Big"),
        ("gpu_test-run", "gpuTestRun"),
        ("plain", "plain"),
        ("a b", None),  # too short
        ("---", None),
    ],
)
def test_a_title_becomes_a_name_where_it_can(title: str, name: str | None) -> None:
    assert name_from(title) == name


@pytest.mark.parametrize(
    ("name", "taken", "free"),
    [
        ("train", [], "train"),
        ("train", ["Train"], "train2"),
        ("train", ["train", "train2", "train4"], "train3"),
        ("train1", ["train1"], "train2"),
        ("train09", ["train09"], "train10"),
        ("1A00", ["1A00"], "1A01"),  # "1A1" would be too short
        ("run2026", ["run2026"], "run20262"),  # a year does not count up
        ("x" * MAX_NAME, ["x" * MAX_NAME], "x" * (MAX_NAME - 1) + "2"),
    ],
)
def test_a_name_in_use_gets_a_number(name: str, taken: list[str], free: str) -> None:
    assert distinct_names([name], taken) == [free]


@given(st.lists(NAMES, max_size=20), st.lists(NAMES, max_size=20))
def test_names_given_out_are_valid_and_differ(names: list[str], taken: list[str]) -> None:
    found = distinct_names(names, taken)
    assert [session_name(name) for name in found] == found
    folded = [name.casefold() for name in [*found, *set(map(str.casefold, taken))]]
    assert len(set(folded)) == len(folded)


@given(st.integers(0, 2**32), st.integers(1, 20))
def test_generated_names_are_recognized(number: int, count: int) -> None:
    assert all(is_generated(name) for name in names_for(None, count, number))
    assert is_generated(readable_name(number))
    assert not any(is_generated(name) for name in names_for("train", count, number))
