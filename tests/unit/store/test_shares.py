"""The shares of many owners with one user."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.core.files.shares import (
    MOST,
    MOST_FROM_ONE,
    READ,
    USER,
    FolderShare,
    ShareKey,
    ShareState,
)
from portal.store import shares as shares_module
from portal.store.shares import ShareStore
from tests.support.fakes import World

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def store(world: World) -> ShareStore:
    return world.systems.stores.shares


def share_with_alice(store: ShareStore, owner: str, number: int, later: int = 0) -> None:
    """The folders of an owner are numbered, and shared in this order."""
    key = ShareKey(owner, f"folder{number:03}", USER, "alice")
    at = NOON + timedelta(minutes=number, hours=later)
    assert store.put(FolderShare(key, READ, at, ShareState.GIVEN), MOST)


def listed(store: ShareStore) -> dict[str, int]:
    """How many folders of each owner are in alice's list."""
    owners = [share.key.owner for share in store.with_user("alice")]
    return {owner: owners.count(owner) for owner in owners}


def test_many_folders_of_one_owner_are_not_all_listed(store: ShareStore) -> None:
    for number in range(MOST_FROM_ONE + 5):
        share_with_alice(store, "carol", number)
    assert listed(store) == {"carol": MOST_FROM_ONE}


def test_some_owners_together_do_not_fill_a_list(
    store: ShareStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four accounts share as many folders as fit, before bob does."""
    monkeypatch.setattr(shares_module, "MOST_RECEIVED", 20)
    for owner in ("eve", "mallory", "oscar", "trudy"):
        for number in range(5):
            share_with_alice(store, owner, number)
    for number in range(5):
        share_with_alice(store, "bob", number, later=1)
    assert listed(store) == dict.fromkeys(("eve", "mallory", "oscar", "trudy", "bob"), 4)


def test_the_shares_of_some_folders(store: ShareStore) -> None:
    for number in range(3):
        share_with_alice(store, "bob", number)
        share_with_alice(store, "carol", number)
    wanted = {("bob", "folder001"), ("carol", "folder002"), ("eve", "folder001")}
    keys = [share.key for share in store.of_folders(wanted)]
    assert [(key.owner, key.folder) for key in keys] == sorted(wanted)[:2]
    assert store.of_folders(()) == []
