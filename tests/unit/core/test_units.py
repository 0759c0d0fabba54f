"""Amounts as text: one unit in a line, limits never overstated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.units import (
    MAX_MINUTES,
    Rounding,
    amounts,
    exact_size,
    file_size,
    floor_size,
    gb_number,
    parse_duration,
    parse_size,
    rounded_size,
    short_minutes,
)


@pytest.mark.parametrize(
    ("mb", "text"),
    [
        (0, "0 GB"),
        (1, "0.01 GB"),  # something is never shown as nothing
        (600, "0.59 GB"),
        (1000, "0.98 GB"),
        (1024, "1 GB"),
        (1536, "1.5 GB"),
        (12_800, "12.5 GB"),
        (307_200, "300 GB"),
        (1_048_576, "1024 GB"),
    ],
)
def test_sizes_are_in_gb(mb: int, text: str) -> None:
    assert rounded_size(mb) == text


def test_a_part_and_the_whole_have_one_unit() -> None:
    assert amounts("memory_mb", 1000, 3072) == ("0.98", "3 GB")
    assert amounts("cpus", 1, 4) == ("1", "4 cores")
    assert amounts("fgpu", 0.5, 2) == ("0.5", "2 fGPU")


@given(st.integers(0, 2**26))
def test_limits_are_never_overstated(mb: int) -> None:
    assert float(gb_number(mb, Rounding.DOWN)) * 1024 <= mb
    assert floor_size(mb).endswith(" GB")


@given(st.integers(1, 2**26))
def test_a_size_as_entered_can_be_entered_again(mb: int) -> None:
    assert parse_size(exact_size(mb)) == mb


def test_files_are_in_the_unit_that_fits() -> None:
    sizes = (0, 1, 40_000, 3 * 2**20, 2 * 2**30)
    assert [file_size(size) for size in sizes] == ["0 KB", "1 KB", "40 KB", "3 MB", "2 GB"]


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        (90, 90),
        ("90", 90),
        ("1:30", 90),
        ("0:05", 5),
        ("8h", 480),
        ("8 h", 480),
        ("1.5h", 90),
        ("1 h 30 min", 90),
        ("1h30m", 90),
        ("2d", 2880),
        ("2 d 1 h 5 min", 2945),
        ("2 Days", 2880),
        ("1 hour", 60),
        ("45 minutes", 45),
    ],
)
def test_times_as_people_write_them(text: object, minutes: int) -> None:
    assert parse_duration(text) == minutes


@pytest.mark.parametrize(
    "text",
    ["", " ", "soon", "1:3", "1:60", "-5", "h", "8x", "1 h 30 s", "90\n", None, 1.5, True, []],
)
def test_anything_else_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="write a time"):
        parse_duration(text)


@given(st.integers(1, MAX_MINUTES))
def test_what_is_shown_can_be_entered(minutes: int) -> None:
    assert parse_duration(short_minutes(minutes)) == minutes
