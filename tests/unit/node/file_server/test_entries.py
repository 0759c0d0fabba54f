"""Lists of folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.node.file_server.conftest import Client


def names(found: Any) -> list[str]:
    return [entry["name"] for entry in found["entries"]]


def test_folders_come_first_and_numbers_are_sorted_by_value(control: Client, home: Path) -> None:
    for name in ("b10.txt", "b9.txt", "A.txt", ".hidden"):
        (home / name).write_text("x")
    found = control("GET", "/v1/list/home").json
    assert names(found) == ["storage", "A.txt", "b9.txt", "b10.txt"]
    assert found["total"] == 4
    assert found["writable"]
    assert names(control("GET", "/v1/list/home?hidden=true").json)[1] == ".hidden"


def test_a_page_of_a_list_by_size(control: Client, home: Path) -> None:
    for size in range(5):
        (home / "storage" / "data" / f"{size}.bin").write_bytes(b"x" * size)
    found = control("GET", "/v1/list/storage/data?sort=size&order=desc&offset=1&limit=2").json
    assert names(found) == ["3.bin", "2.bin"]
    assert (found["total"], found["offset"]) == (5, 1)


def test_a_name_in_no_known_encoding_is_shown_and_can_be_opened(
    control: Client, data: Client, home: Path
) -> None:
    Path(home, "caf\udce9\n.txt").write_bytes(b"coffee")
    found = control("GET", "/v1/list/home").json["entries"][1]
    assert found["name"] == "caf?\n.txt"
    assert found["path"] == "home/caf%E9%0A.txt"
    assert data("GET", f"/data/files/{found['path']}").body == b"coffee"


def test_what_does_not_exist_is_a_404(control: Client) -> None:
    for path in ("nowhere", "home/none", "home/none/deeper"):
        found = control("GET", f"/v1/list/{path}")
        assert (found.status, found.json["code"]) == (404, "not_found"), path


def test_a_link_that_leads_outside_is_shown_and_not_followed(
    control: Client, data: Client, home: Path
) -> None:
    (home / "storage" / "etc").symlink_to("/etc")
    found = control("GET", "/v1/entry/home/storage/etc").json
    assert (found["kind"], found["link"]) == ("link", "/etc")
    assert control("GET", "/v1/list/home/storage/etc").json["code"] == "outside"
    assert data("GET", "/data/files/home/storage/etc/passwd").json["code"] == "outside"


def test_a_storage_folder_may_be_a_link_to_another_place(
    control: Client, data: Client, home: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / "deep").mkdir(parents=True)
    (project / "deep" / "a.txt").write_text("inside")
    (project / "out").symlink_to("/etc")
    (project / "in").symlink_to(project / "deep")
    (home / "storage" / "p").symlink_to(project)
    assert names(control("GET", "/v1/list/storage/p").json) == ["deep", "in", "out"]
    assert data("GET", "/data/files/storage/p/in/a.txt").body == b"inside"
    assert control("GET", "/v1/list/storage/p/out").json["code"] == "outside"
    (home / "storage" / "data" / "q").symlink_to(project)
    assert control("GET", "/v1/list/storage/data/q").json["code"] == "outside"


def test_a_link_in_a_folder_that_others_can_write_is_not_trusted(
    control: Client, home: Path, tmp_path: Path
) -> None:
    (home / "storage" / "p").symlink_to(tmp_path)
    (home / "storage").chmod(0o777)
    assert control("GET", "/v1/list/storage/p").json["code"] == "outside"
