"""Amounts of several limits put together."""

from __future__ import annotations

from portal.core.cluster.rules.amounts import Tres

FIRST, SECOND = Tres(cpus=0, memory_mb=10), Tres(cpus=4, shards=2)


def test_an_earlier_limit_wins_even_if_it_is_nothing() -> None:
    assert FIRST.or_else(SECOND) == Tres(0, 10, 2)


def test_what_an_earlier_limit_leaves() -> None:
    assert SECOND.beside(FIRST) == Tres(shards=2)
