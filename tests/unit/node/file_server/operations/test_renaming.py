"""Renaming one file or folder."""

from __future__ import annotations

from pathlib import Path

from tests.unit.node.file_server.conftest import Client


def test_a_file_gets_any_name_and_never_that_of_another(control: Client, home: Path) -> None:
    (home / "a").write_text("a")
    (home / "b").write_text("b")
    found = control("POST", "/v1/rename/home/a", {"name": "b"})
    assert (found.status, found.json["code"], found.json["field"]) == (409, "exists", "name")
    assert found.json["detail"] == "“b” exists already. Choose another name."
    found = control("POST", "/v1/rename/home/a", {"name": "-rf\n<b>\u202e"})
    assert (found.status, found.json["name"]) == (200, "-rf\n<b>\u202e")
    found = control("POST", f"/v1/rename/{found.json['path']}", {"name_path": "caf%E9"})
    assert (found.status, found.json["path"]) == (200, "home/caf%E9")
    assert Path(home, "caf\udce9").read_text() == "a"
    assert (home / "b").read_text() == "b"
    assert control("POST", "/v1/rename/home/b", {"name": "b"}).status == 200


def test_a_name_that_cannot_be_names_its_field(control: Client, home: Path) -> None:
    (home / "a").write_text("a")
    for body, field in (
        ({"name": ""}, "name"),
        ({"name": ".."}, "name"),
        ({"name": "x/y"}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"name": "\ud800"}, "name"),
        ({"name": ".slipway-x"}, "name"),
        ({"name": 5}, "name"),
        ({"name_path": "a%2Fb"}, "name_path"),
        ({}, "name"),
    ):
        found = control("POST", "/v1/rename/home/a", body)
        assert (found.status, found.json["field"]) == (422, field), body
    assert control("POST", "/v1/rename/home/none", {"name": "x"}).status == 404
    assert control("POST", "/v1/rename/home", {"name": "x"}).json["code"] == "root"


def test_a_link_is_renamed_and_not_what_it_leads_to(control: Client, home: Path) -> None:
    (home / "a").write_text("a")
    (home / "link").symlink_to("a")
    found = control("POST", "/v1/rename/home/link", {"name": "other"}).json
    assert (found["kind"], found["link"]) == ("link", "a")
    assert (home / "a").exists()
