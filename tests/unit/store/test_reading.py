"""Reads of one request in one transaction."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from portal.store.reading import snapshot
from tests.support.fakes import World


def test_reads_inside_see_one_state(world: World) -> None:
    world.status.note_answer(world.clock.now)
    with snapshot(world.engine):
        before = world.status.slurm_status()
        world.status.note_answer(world.clock.now + timedelta(seconds=9))
        assert world.status.slurm_status() == before
    assert world.status.slurm_status() != before


def test_a_snapshot_within_another_is_the_same(world: World) -> None:
    with snapshot(world.engine):
        before = world.status.slurm_status()
        world.status.note_answer(world.clock.now)
        with snapshot(world.engine):
            assert world.status.slurm_status() == before
        assert world.status.slurm_status() == before


def test_it_ends_with_an_exception(world: World) -> None:
    before = world.status.slurm_status()
    with suppress(ValueError), snapshot(world.engine):
        assert world.status.slurm_status() == before
        raise ValueError
    world.status.note_answer(world.clock.now)
    assert world.status.slurm_status() != before
