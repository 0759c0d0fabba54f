"""The natural order of names."""

from __future__ import annotations

from portal.node.common.natural_sort import natural_key


def test_numbers_are_ordered_by_value_and_letters_regardless_of_case() -> None:
    ordered = ["", "2 x", "10 x", "a", "a1", "A2b", "a2B1", "a10", "ab", "Lab 9", "lab 12"]
    names = list(ordered)
    names.sort(key=natural_key, reverse=True)
    assert names == ordered[::-1]


def test_digits_of_other_scripts_are_letters() -> None:
    assert natural_key("٣") == [(1, 0, "٣")]
