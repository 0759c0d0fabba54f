"""What Slurm does not know yet after its restart is no refusal; what it never had is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.core.launch.request import LaunchRequest, parse_launch
from portal.errors import GresUnknown, NodesUnknown, Unavailable
from portal.store.status import Reported
from tests.support.fakes import World, make_world
from tests.support.sessions import ALICE
from tests.unit.web.conftest import make_settings, with_gpus

UNKNOWN = "Invalid generic resource (gres) specification"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal whose node n1 has a GPU of four shards."""
    made = make_world(with_gpus(make_settings(tmp_path)))
    made.slurm.gres = {"n1": "gpu:demo:1,shard:demo:4"}
    made.worker.read_partitions()
    made.worker.read_limits()
    made.slurm.refuse = UNKNOWN
    return made


def gpu_request() -> LaunchRequest:
    resources = {"cpus": 1, "memory": "600m", "fgpu": 1}
    return parse_launch({"environment": "python", "resources": resources})


def test_gpus_that_nodes_were_reported_with_are_not_known_yet(world: World) -> None:
    with pytest.raises(Unavailable, match="after its restart"):
        world.launch_all(ALICE, gpu_request())
    assert world.store.live() == []


def test_gpus_that_no_node_is_known_to_have_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.status, "reported", Reported)
    with pytest.raises(GresUnknown) as caught:
        world.launch_all(ALICE, gpu_request())
    assert [error.field for error in caught.value.errors] == ["resources.fgpu"]


def test_a_refusal_of_a_session_without_a_gpu_stays_one(world: World) -> None:
    request = parse_launch({"environment": "python", "resources": {"cpus": 1, "memory": "600m"}})
    with pytest.raises(GresUnknown):
        world.launch_all(ALICE, request)


def test_an_estimate_is_left_out_until_slurm_knows_its_gpus(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(user: str, script: str) -> None:
        raise GresUnknown([])

    monkeypatch.setattr(world.scheduler, "estimate", unknown)
    assert world.estimate(ALICE, gpu_request()) is None


NODES = "Requested node configuration is not available"


def plain_request(**more: object) -> LaunchRequest:
    resources = {"cpus": 1, "memory": "600m"}
    return parse_launch({"environment": "python", "resources": resources} | more)


def test_nodes_that_have_not_reported_yet_are_no_refusal(world: World) -> None:
    """For seconds after its start slurmctld refuses every job in these words."""
    world.worker.poll()
    world.slurm.refuse = NODES
    for request in (plain_request(), gpu_request()):
        with pytest.raises(Unavailable, match="after its restart"):
            world.launch_all(ALICE, request)


def test_what_no_single_node_has_stays_refused(world: World) -> None:
    world.worker.poll()
    world.slurm.refuse = NODES
    world.status.nodes.save([])
    with pytest.raises(NodesUnknown) as caught:
        world.launch_all(ALICE, plain_request())
    assert [error.field for error in caught.value.errors] == ["resources"]
