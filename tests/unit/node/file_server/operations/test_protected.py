"""A shared storage folder stays where it is, by whatever door and name it is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server.deadlines import Deadlines
from portal.node.file_server.operations.protected import Protected
from portal.node.file_server.roots import Root, Roots
from portal.node.file_server.server import FileServer
from tests.support.other_account import BOB, private_home, readable_by_bob
from tests.unit.node.file_server.conftest import Answer, Client

WITH_BOB = {"kind": "user", "name": BOB.pw_name, "access": "write"}


@pytest.fixture
def home() -> Iterator[Path]:
    with private_home() as folder:
        (folder / "storage" / "data").mkdir()
        (folder / "storage" / "data" / "plan.txt").write_text("plan")
        yield folder


@pytest.fixture
def plan(control: Client, home: Path) -> Path:
    """A file that bob can read since its folder is shared with him."""
    assert control("PUT", "/v1/shares/storage/data", WITH_BOB).status == 200
    path = home / "storage" / "data" / "plan.txt"
    assert readable_by_bob([path]) == {path}
    return path


def operate(control: Client, **order: Any) -> Answer:
    return control("POST", "/v1/operations", order)


NAMES = [
    "storage/data",
    "storage//data",
    "%73torage/data",
    "storage/%64ata",
    "storage/data/",
    "home/storage/data",
    "home//storage/data",
    "home/alias/data",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "door",
    [
        lambda control, data, name: data(
            "MOVE", f"/data/dav/{name}", headers={"Destination": "/data/dav/home/moved"}
        ),
        lambda control, data, name: data(
            "MOVE", f"/data/dav/{name}", headers={"Destination": "/data/dav/storage/moved"}
        ),
        lambda control, data, name: data("DELETE", f"/data/dav/{name}"),
        lambda control, data, name: operate(control, kind="delete", items=[name]),
        lambda control, data, name: operate(control, kind="move", items=[name], to="home"),
        lambda control, data, name: control("POST", f"/v1/rename/{name}", {"name": "moved"}),
    ],
    ids=["dav move", "dav rename", "dav delete", "delete", "move", "rename"],
)
def test_no_door_takes_a_shared_folder_away(
    control: Client,
    data: Client,
    home: Path,
    plan: Path,
    name: str,
    door: Callable[[Client, Client, str], Answer],
) -> None:
    (home / "alias").symlink_to("storage")
    found = door(control, data, name)
    assert (found.status, found.json["code"], found.json["folders"]) == (409, "shared", ["data"])
    assert f"“data” is shared with {BOB.pw_name}, who would lose it." in found.json["detail"]
    assert plan.read_text() == "plan"


def test_a_shared_folder_is_not_replaced(control: Client, home: Path, plan: Path) -> None:
    (home / "data").mkdir()
    for kind in ("move", "copy"):
        order = {"kind": kind, "items": ["home/data"], "on_conflict": "replace"}
        for to in ("storage", "home/storage"):
            found = operate(control, to=to, **order)
            assert (found.status, found.json["folders"]) == (409, ["data"])
    assert plan.exists()


def test_all_shared_folders_of_an_operation_are_named_and_only_if_nothing_else_is_wrong(
    control: Client, home: Path, plan: Path
) -> None:
    (home / "storage" / "a b").mkdir()
    (home / "storage" / "mine").mkdir()
    control("PUT", "/v1/shares/storage/a%20b", WITH_BOB)
    items = ["storage/mine", "storage/data", "storage/a b"]
    found = operate(control, kind="delete", items=items)
    assert found.json["folders"] == ["data", "a%20b"]
    assert operate(control, kind="delete", items=[*items, "home"]).json["code"] == "root"
    (home / "data").mkdir()
    assert operate(control, kind="move", items=items, to="home").json["code"] == "exists"
    skipped = operate(control, kind="move", items=["storage/data"], to="home", on_conflict="skip")
    assert skipped.status == 202
    stays = {"kind": "move", "items": ["storage/data"], "on_conflict": "replace"}
    assert operate(control, to="home/storage", **stays).status == 202
    assert plan.exists()


def test_the_portal_takes_shares_along_when_it_renames(
    control: Client, home: Path, plan: Path
) -> None:
    assert control("POST", "/v1/rename/storage/data", {"name": "data"}).status == 200
    body = {"name": "moved", "shares_follow": True}
    assert control("POST", "/v1/rename/storage/data", body).status == 200
    moved = home / "storage" / "moved" / "plan.txt"
    assert readable_by_bob([moved]) == {moved}


def test_a_folder_that_is_no_longer_shared_may_go(
    control: Client, data: Client, home: Path, plan: Path
) -> None:
    control("DELETE", f"/v1/shares/storage/data?kind=user&name={BOB.pw_name}")
    headers = {"Destination": "/data/dav/home/moved"}
    assert data("MOVE", "/data/dav/storage/data", headers=headers).status == 201
    assert readable_by_bob([home / "moved" / "plan.txt"]) == set()


def test_while_access_is_changed_nothing_is_moved_out_and_the_other_way_round(
    control: Client, data: Client, home: Path, server: FileServer
) -> None:
    folder = (home / "storage" / "data").stat()
    holds, key = server.files.roots.holds, (folder.st_dev, folder.st_ino)
    headers = {"Destination": "/data/dav/home/moved"}
    holds.begin_change(key, 4)
    for path in ("storage/data", "storage/data/plan.txt"):
        found = data("MOVE", f"/data/dav/{path}", headers=headers)
        assert (found.status, found.json["code"]) == (409, "busy")
    holds.end_change(key)
    with holds.moving(key):
        assert control("PUT", "/v1/shares/storage/data", WITH_BOB).json["code"] == "busy"
    assert control("PUT", "/v1/shares/storage/data", WITH_BOB).status == 200


def test_a_storage_area_that_never_answered_may_have_shared_folders(
    control: Client, data: Client, home: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(area: str) -> bool:
        return area == "storage"

    monkeypatch.setattr(server.files.deadlines, "is_late", late)
    server.files.roots.storage = None
    assert data("DELETE", "/data/dav/home/storage/data").status == 503
    monkeypatch.undo()
    assert data("DELETE", "/data/dav/home/storage/data").status == 204


def test_without_a_storage_area_nothing_is_shared(home: Path) -> None:
    roots = Roots({"home": Root("home", str(home)), "storage": Root("storage", f"{home}/none")})
    protected = Protected(roots, Deadlines())
    descriptor = os.open(home / "storage", os.O_RDONLY)
    with protected.moving(descriptor, b"data"), protected.storage_folder(descriptor) as folder:
        assert folder is None
    os.close(descriptor)
