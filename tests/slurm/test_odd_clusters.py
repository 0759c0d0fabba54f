"""Partitions as some sites set them: we accept and refuse launches there as sbatch does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.client import Api
from tests.cluster import Cluster, wait_for
from tests.slurm.test_slurm_options import LEARNT, Choice, ours, slurms

# What is set, and what sets it back.
ODD = {
    "State=DOWN": "State=UP",
    "State=DRAIN": "State=UP",
    "State=INACTIVE": "State=UP",
    "Hidden=YES": "Hidden=NO",
    "RootOnly=YES": "RootOnly=NO",
    "ReqResv=YES": "ReqResv=NO",
    "OverSubscribe=FORCE": "OverSubscribe=NO",
    "ExclusiveUser=YES": "ExclusiveUser=NO",
}
REFUSED = {"State=DRAIN", "State=INACTIVE", "RootOnly=YES", "ReqResv=YES"}


@contextmanager
def changed(cluster: Cluster, word: str, back: str) -> Iterator[None]:
    """The partition `short` with a change, which is undone even if the test fails."""
    update = ("scontrol", "update", "PartitionName=short")
    cluster.run("ctl", *update, word)
    try:
        yield
    finally:
        cluster.run("ctl", *update, back)


@pytest.mark.parametrize("word", ODD)
def test_a_launch_there_is_accepted_or_refused_as_by_sbatch(
    bob: Api, cluster: Cluster, word: str
) -> None:
    one = Choice(partition="short")
    assert not ours(bob, one)
    with changed(cluster, word, ODD[word]):
        (slurm,) = slurms(cluster, "bob", [one])
        assert bool(slurm) is (word in REFUSED), slurm
        wait_for(f"as Slurm: {slurm}", lambda: bool(ours(bob, one)) is bool(slurm), LEARNT, 2.0)
    wait_for("the partition again", lambda: not ours(bob, one), LEARNT, 2.0)
