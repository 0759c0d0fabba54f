"""Shared folders over the REST API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fakes import World
from tests.unit.web.conftest import Api

MakeApi = Callable[[str], Api]

BOB = "/folders/data/shares/user/bob"


@pytest.fixture
def program(api: MakeApi) -> Api:
    """Alice's program."""
    return api("alice")


@pytest.fixture
def folder(world: World) -> Path:
    path = world.file_servers.home("alice") / "storage" / "data"
    path.mkdir()
    return path


def test_a_folder_is_shared_listed_and_taken_back(program: Api, api: MakeApi, folder: Path) -> None:
    assert folder.is_dir()
    given = program("PUT", BOB, json={"access": "read"})
    assert given.status_code == 200
    share = given.json["share"]  # type: ignore[index]
    created = share.pop("created")
    assert share == {
        "folder": "data",
        "kind": "user",
        "name": "bob",
        "access": "read",
        "state": "given",
    }
    listed = program("GET", "/folders/data/shares").json
    assert listed
    assert listed["shares"] == [share | {"created": created}]
    assert listed["change"]["running"] is False
    bobs = api("bob")("GET", "/folders/shared").json
    assert bobs == {
        "folders": [{"name": "alice/data", "owner": "alice", "folder": "data", "access": "read"}]
    }
    assert program("DELETE", BOB).status_code == 204
    assert program("DELETE", BOB).status_code == 404
    assert api("bob")("GET", "/folders/shared").json == {"folders": []}


def test_nobody_learns_of_anothers_folders(program: Api, api: MakeApi, folder: Path) -> None:
    assert folder.is_dir()
    program("PUT", BOB, json={"access": "write"})
    bob = api("bob")
    for path in ("data", "alice%2Fdata", "none"):
        assert bob("GET", f"/folders/{path}/shares").status_code == 404
        answer = bob("PUT", f"/folders/{path}/shares/user/carol", json={"access": "read"})
        assert answer.status_code == 404
    assert bob("DELETE", BOB).status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/folders/data/shares/everyone/bob", {"access": "read"}, 404),
        ("/folders/data/shares/user/alice", {"access": "read"}, 422),
        ("/folders/data/shares/user/a%20b", {"access": "read"}, 422),
        (BOB, {"access": "all"}, 422),
        (BOB, {}, 422),
        (BOB, {"access": "read", "more": 1}, 422),
        ("/folders/none/shares/user/bob", {"access": "read"}, 404),
    ],
)
def test_wrong_requests(program: Api, folder: Path, path: str, body: object, status: int) -> None:
    assert folder.is_dir()
    assert program("PUT", path, json=body).status_code == status


def test_a_token_for_sessions_alone_cannot_share(program: Api, folder: Path) -> None:
    assert folder.is_dir()
    made = program("POST", "/tokens", json={"scopes": ["read", "write"]})
    token = made.json["token"]  # type: ignore[index]
    weak = Api(program.client, token)
    assert weak("GET", "/folders/shared").status_code == 403
    assert weak("PUT", BOB, json={"access": "read"}).status_code == 403


def test_who_loses_a_folder_is_told_before_it_is_gone(program: Api, folder: Path) -> None:
    nobody = "/folders/data/shares/user/nobody"  # an account of the test's machine
    assert program("PUT", nobody, json={"access": "write"}).status_code == 200
    text = "“data” is shared with nobody (may change it), who lose it."
    assert program("GET", "/files/uses/storage/data").json == {
        "use": {
            "folder": "data",
            "shares": [{"kind": "user", "name": "nobody", "access": "write"}],
            "sessions": [],
            "text": text,
        }
    }
    assert program("GET", "/files/uses/home").json == {"use": None}
    order = {"kind": "delete", "items": ["storage/data"]}
    refused = program("POST", "/files/operations", json=order)
    assert refused.status_code == 409
    assert refused.json
    assert (refused.json["code"], refused.json["detail"].startswith(text)) == ("shared", True)
    assert folder.is_dir()
    wrong = program("POST", "/files/operations", json=order | {"end_shares": "yes"})
    assert wrong.status_code == 422
    done = program("POST", "/files/operations", json=order | {"end_shares": True})
    assert done.status_code == 202
    assert not folder.exists()
