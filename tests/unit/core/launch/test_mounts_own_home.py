"""Folders of sessions in their owner's own home: where they are, and where apps start."""

from __future__ import annotations

from typing import Any

import pytest

from portal.core.launch.mounts import check_in_own_home, path_in_own_home, start_folder
from portal.core.launch.request import parse_launch
from tests.support.sessions import VALID_REQUEST

READ_ONLY = {"folder": "maps", "read_only": True}


@pytest.mark.parametrize(
    ("mounts", "storage", "start"),
    [
        ([], "storage", ""),
        (["data"], "storage", "storage/data"),
        (["data"], "/lustre/alice/", "/lustre/alice/data"),
        (["data", READ_ONLY], "storage", "storage/data"),
        ([READ_ONLY], "storage", ""),
        (["data", "results"], "storage", ""),
        (["home"], "storage", ""),
        (["home", "data"], "storage", ""),
    ],
)
def test_apps_start_in_the_only_writable_folder_or_in_the_home(
    mounts: list[Any], storage: str, start: str
) -> None:
    assert start_folder(parse_launch({**VALID_REQUEST, "mounts": mounts}).mounts, storage) == start


@pytest.mark.parametrize(
    ("folder", "storage", "path"),
    [
        ("data", "storage", "~/storage/data"),
        ("data", "/lustre/alice/", "/lustre/alice/data"),
        ("home", "storage", "~"),
    ],
)
def test_folders_are_where_the_cluster_has_them(folder: str, storage: str, path: str) -> None:
    assert path_in_own_home(folder, storage) == path


def test_the_home_cannot_be_read_only() -> None:
    def fields(mounts: list[Any]) -> list[str]:
        request = parse_launch({**VALID_REQUEST, "mounts": mounts})
        return [error.field for error in check_in_own_home(request.mounts)]

    assert fields(["data", {"folder": "home", "read_only": True}]) == ["mounts.1"]
    assert fields(["home", READ_ONLY]) == []
