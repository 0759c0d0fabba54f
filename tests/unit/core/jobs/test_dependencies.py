"""Slurm's list of what a job waits for, in words."""

from __future__ import annotations

import pytest

from portal.core.jobs.dependencies import Dependency, dependencies


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("afterok:12(unfulfilled)", [Dependency("has ended successfully", "12")]),
        (
            "afterany:12:13_4(unfulfilled)",
            [Dependency("afterany:12:13_4(unfulfilled)")],
        ),
        (
            "afterany:12(unfulfilled),afterany:13_4(failed)",
            [
                Dependency("has ended", "12"),
                Dependency("has ended", "13_4", "which can no longer happen"),
            ],
        ),
        ("afternotok:12_*(unfulfilled)", [Dependency("has failed", "12")]),
        ("after:12+10(unfulfilled)", [Dependency("has started 10 minutes ago", "12")]),
        ("singleton(unfulfilled)", [Dependency("no earlier job of this name and owner is left")]),
        ("<b>afterok:1", [Dependency("<b>afterok:1")]),
    ],
)
def test_each_kind(text: str, found: list[Dependency]) -> None:
    assert dependencies(text) == (found, False)


def test_one_of_them_may_be_enough() -> None:
    assert dependencies("afterok:1(unfulfilled)?afterok:2(unfulfilled)") == (
        [Dependency("has ended successfully", number) for number in ("1", "2")],
        True,
    )


def test_long_lists_are_bounded() -> None:
    assert len(dependencies(",".join(f"afterok:{n}" for n in range(5000)))[0]) == 100
