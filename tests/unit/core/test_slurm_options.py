"""Names that Slurm permits."""

from __future__ import annotations

import pytest

from portal.core.slurm_options import is_group_name


@pytest.mark.parametrize("name", ["main", "sp ace", "Größe", "gpu+big:1", "_x", "a" * 100])
def test_names_of_partitions(name: str) -> None:
    assert is_group_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "a,b", "a|b", '"a"', "a\nb", "a\u2028b", "a\u202eb", " a", "a ", "-p", "$(id)", "a" * 101],
)
def test_what_no_name_of_a_partition_may_be(name: str) -> None:
    assert not is_group_name(name)
