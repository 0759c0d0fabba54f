"""Which folders of others a session may mount."""

from __future__ import annotations

import pytest

from portal.core.files.shares import (
    GROUP,
    MOST,
    MOST_FROM_ONE,
    READ,
    USER,
    WRITE,
    Access,
    FolderShare,
    Kind,
    ShareKey,
    ShareState,
)
from portal.core.launch.mounts import Mount
from portal.errors import InvalidRequest
from tests.support.fakes import World
from tests.support.sessions import ALICE


def share(
    world: World, folder: str, kind: Kind = USER, name: str = "alice", access: Access = WRITE
) -> None:
    key = ShareKey("carol", folder, kind, name)
    given = FolderShare(key, access, world.clock.now, ShareState.GIVEN)
    assert world.systems.stores.shares.put(given, MOST)


def granted(world: World, *folders: str) -> list[tuple[str, bool]]:
    mounts = [Mount(folder=folder) for folder in folders]
    return [
        (mount.folder, mount.read_only) for mount in world.services.storage.granted(ALICE, mounts)
    ]


def test_each_of_very_many_shared_folders_can_be_mounted(world: World) -> None:
    names = [f"project{number:03}" for number in range(MOST_FROM_ONE + 5)]
    for name in names:
        world.clock.advance(seconds=1)
        share(world, name)
    assert granted(world, f"carol/{names[-1]}") == [(f"carol/{names[-1]}", False)]


def test_shares_with_others_are_none(world: World) -> None:
    share(world, "bobs", name="bob")
    share(world, "groups", GROUP, "bob")
    share(world, "mine", access=READ)
    share(world, "ours", GROUP, "research", READ)
    with pytest.raises(InvalidRequest) as caught:
        granted(world, "carol/mine", "carol/bobs", "carol/groups", "dave/mine")
    assert [error.field for error in caught.value.errors] == ["mounts.1", "mounts.2", "mounts.3"]
    assert granted(world, "carol/mine", "carol/ours") == [
        ("carol/mine", True),
        ("carol/ours", True),
    ]
