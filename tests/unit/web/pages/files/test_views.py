"""The Files page: browsing, refusals in words, and what its scripts may ask."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

import pytest
from flask import Flask

from portal.config.files import FileSettings
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import PORTAL, Browser, Runner, make_app, make_settings


@pytest.fixture
def home(world: World) -> Path:
    """Alice's home directory."""
    return world.file_servers.home("alice")


def names(page: str) -> list[str]:
    """The names that a page lists, in order."""
    return re.findall(r'<tr [^>]*data-name="([^"]*)"', page)


def test_a_folder_lists_folders_first_and_sorts(home: Path, alice: Browser) -> None:
    (home / "b10").write_bytes(b"x" * 2000)
    (home / "b9").write_bytes(b"x" * 5000)
    (home / "z").mkdir()
    (home / ".hidden").touch()
    page = alice.get("/files/home").text
    assert names(page) == ["storage", "z", "b9", "b10"]
    assert 'href="/files/home/b9?view"' in page
    assert 'href="/files/home/z"' in page
    page = alice.get("/files/home?sort=size&order=desc&hidden=true").text
    assert names(page) == ["storage", "z", "b9", "b10", ".hidden"]
    assert 'aria-sort="descending"' in page
    assert 'href="/files/home/z?sort=size&amp;order=desc&amp;hidden=true"' in page


def test_a_browser_is_admitted_to_the_bytes(home: Path, alice: Browser) -> None:
    assert home.is_dir()
    alice.get("/files/home")
    assert alice.client.get_cookie("slipway-files") is not None


def test_what_saving_cannot_keep_is_on_the_page_of_a_file(home: Path, alice: Browser) -> None:
    file = home / "a.txt"
    file.write_text("x")
    page = alice.get("/files/home/a.txt?view").text
    assert 'data-saving="replace"' in page
    assert "data-file-saving" not in page
    os.link(file, home / "b.txt")
    page = alice.get("/files/home/a.txt?view").text
    assert 'data-saving="in_place"' in page
    assert re.search(
        r"<p [^>]*data-file-saving hidden>It is written in place, since it has 2", page
    )
    entry = alice.get("/files-ask/entry/home/a.txt").get_json()
    assert entry["saving"]["how"] == "in_place"


def test_large_folders_have_pages(home: Path, alice: Browser) -> None:
    folder = home / "many"
    folder.mkdir()
    for number in range(450):
        (folder / f"f{number}").touch()
    page = alice.get("/files/home/many").text
    assert len(names(page)) == 200
    assert "1\u2013200 of 450" in page
    page = alice.get("/files/home/many?offset=400").text
    assert names(page)[0] == "f400"
    assert len(names(page)) == 50
    assert 'href="/files/home/many?offset=200"' in page
    assert "401\u2013450 of 450" in page


def test_hostile_names_are_shown_harmlessly_and_lead_to_their_file(
    home: Path, alice: Browser
) -> None:
    bidi = "\u202eevil"
    hostile = [b"<img src=x onerror=alert(1)>", b"new\nline", b"\xff\xfe", b"a%2Fb?c#d"]
    hostile.append(bidi.encode())
    for name in hostile:
        (home / os.fsdecode(name)).write_bytes(b"1")
    page = alice.get("/files/home").text
    assert "<img src=x" not in page
    assert "\u202e" not in page
    links = re.findall(r'href="(/files/home/[^"]*\?view)"', page)
    assert len(links) == len(hostile)
    for link in links:
        raw = unquote_to_bytes(link.removesuffix("?view")).decode(
            "latin-1"
        )  # as servers pass it on
        answer = alice.get(link, environ_overrides={"PATH_INFO": raw})
        assert answer.status_code == 200, link


def test_search_here_and_below(home: Path, alice: Browser) -> None:
    (home / "a" / "deep").mkdir(parents=True)
    (home / "a" / "deep" / "Result.csv").touch()
    (home / "result.txt").touch()
    assert names(alice.get("/files/home?search=result").text) == ["result.txt"]
    page = alice.get("/files/home?search=result&below=true").text
    assert names(page) == ["result.txt", "Result.csv"]
    assert "in <bdi>a/deep</bdi>" in page
    page = alice.get("/files/home?search=nothing&below=true").text
    assert "Nothing of this name" in page


def test_an_empty_folder_says_what_to_do(home: Path, alice: Browser) -> None:
    (home / "empty").mkdir()
    page = alice.get("/files/home/empty").text
    assert "This folder is empty" in page
    assert "Drop files and folders here" in page


def test_refusals_are_pages_that_say_what_to_do(home: Path, alice: Browser) -> None:
    answer = alice.get("/files/home/missing")
    assert answer.status_code == 404
    assert "It may have been renamed, moved or deleted" in answer.text
    assert 'href="/files/home"' in answer.text
    (home / "sub").mkdir()
    (home / "sub" / "out").symlink_to("/etc")
    answer = alice.get("/files/home/sub/out")
    assert answer.status_code == 403
    assert "link to “/etc”" in answer.text
    assert alice.get("/files/no-such-area").status_code == 404


def test_an_address_of_a_file_leads_to_its_page(home: Path, alice: Browser) -> None:
    (home / "a.txt").write_text("hello")
    answer = alice.get("/files/home/a.txt")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/files/home/a.txt?view")
    page = alice.get("/files/home/a.txt?view").text
    assert 'href="/data/files/home/a.txt?download"' in page
    assert 'data-size="5"' in page
    answer = alice.get("/files/home/storage?view")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/files/home/storage")


def test_the_start_names_areas_and_storage_folders(home: Path, alice: Browser) -> None:
    (home / "storage" / "data").mkdir()
    (home / "storage" / "file").touch()
    page = alice.get("/files").text
    assert 'href="/files/home"' in page
    assert names(page) == ["data"]
    assert 'href="/files/storage/data"' in page


def test_the_start_of_a_new_account_says_what_to_do(home: Path, alice: Browser) -> None:
    (home / "storage").rmdir()
    page = alice.get("/files").text
    assert "No storage folders yet" in page
    assert "Try again" not in page
    for root in ("home", "storage"):
        assert alice.get(f"/files-ask/quota/{root}").status_code == 200
    assert "This folder is empty" in alice.get("/files/storage").text
    (home / "storage").rmdir()
    assert alice.post("/files-ask/folder/storage/data", {"body": "{}"}).status_code == 200
    assert 'data-path="storage/data"' in alice.get("/files").text


def test_the_start_says_that_the_file_server_is_away(world: World, alice: Browser) -> None:
    world.file_servers.away = True
    answer = alice.get("/files")
    assert answer.status_code == 200
    assert "The login node does not answer." in answer.text
    answer = alice.get("/files/home")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "Try again" in answer.text


# What the scripts ask


def test_scripts_list_create_rename_and_operate(home: Path, alice: Browser) -> None:
    made = alice.post("/files-ask/folder/home/new", {"body": "{}"})
    assert (made.status_code, made.get_json()["path"]) == (200, "home/new")
    renamed = alice.post("/files-ask/rename/home/new", {"body": '{"name": "old"}'})
    assert renamed.get_json()["path"] == "home/old"
    assert (home / "old").is_dir()
    body = '{"kind": "delete", "items": ["home/old"]}'
    done = alice.post("/files-ask/operations", {"body": body}).get_json()
    assert done["state"] == "done"
    assert not (home / "old").exists()
    listed = alice.get("/files-ask/operations").get_json()["operations"]
    assert [one["id"] for one in listed] == [done["id"]]
    assert alice.get("/files-ask/list/home").get_json()["total"] == 1
    assert alice.get("/files-ask/uploads").get_json() == {"uploads": []}


def test_fetching_is_offered_where_the_site_permits_hosts(home: Path, alice: Browser) -> None:
    assert home.is_dir()
    assert "Fetch from a URL" not in alice.get("/files/home").text
    settings = make_settings(home.parents[1])
    files = FileSettings(fetch_hosts=("data.example.org", "*.zenodo.org"))
    app = make_app(make_world(settings.model_copy(update={"files": files})))
    page = Browser(app).log_in("alice").get("/files/home").text
    assert 'data-do="fetch"' in page
    assert "From data.example.org, *.zenodo.org." in page


def test_folders_have_the_links_of_their_area(home: Path) -> None:
    (home / "a & b {user}").mkdir()
    links = [
        {"title": "Open in Globus", "area": "home", "url": "https://g.example.org/?p=/~/{path}/"},
        {"title": "Archive", "area": "storage", "url": "https://s3.example.org/{user}/{path}"},
    ]
    settings = make_settings(home.parents[1])
    files = FileSettings.model_validate({"links": links})
    app = make_app(make_world(settings.model_copy(update={"files": files})))
    page = Browser(app).log_in("alice").get("/files/home/a%20&%20b%20%7Buser%7D").text
    assert 'href="https://g.example.org/?p=/~/a%20%26%20b%20%7Buser%7D/"' in page
    assert "Archive" not in page


def test_scripts_get_code_and_field_of_a_refusal(home: Path, alice: Browser) -> None:
    (home / "there").mkdir()
    answer = alice.post("/files-ask/folder/home/there", {"body": "{}"})
    found = answer.get_json()
    assert (answer.status_code, answer.mimetype) == (409, "application/problem+json")
    assert (found["code"], found["detail"]) == ("exists", "Something of this name exists already.")
    answer = alice.post("/files-ask/operations", {"body": '{"kind": "burn", "items": ["home/a"]}'})
    assert (answer.status_code, answer.get_json()["field"]) == (422, "kind")


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/files-ask/ping", {}, 404),
        ("/files-ask/folder/home/x", {"method": "DELETE"}, 404),
        ("/files-ask/folder/home/x", {"body": "["}, 422),
        ("/files-ask/folder/home/x", {"body": "[1]"}, 422),
        ("/files-ask/operations", {"body": '{"kind": "delete", "items": 5}'}, 422),
    ],
)
def test_scripts_cannot_ask_for_anything_else(
    home: Path, alice: Browser, path: str, fields: dict[str, str], status: int
) -> None:
    answer = alice.post(path, fields)
    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json")
    assert sorted(os.listdir(home)) == ["storage"]
    assert alice.get("/files-ask/ping").status_code == 404


def test_strangers_and_forms_without_a_token_are_refused(
    home: Path, app: Flask, alice: Browser
) -> None:
    stranger = Browser(app)
    assert stranger.get("/files-ask/list/home").status_code == 303
    headers = {"HX-Request": "true"}
    assert stranger.get("/files-ask/list/home", headers=headers).status_code == 401
    answer = alice.client.post("/files-ask/folder/home/x", data={"body": "{}"}, base_url=PORTAL)
    assert answer.status_code == 400
    assert sorted(os.listdir(home)) == ["storage"]


def test_one_users_files_are_nobody_elses(home: Path, app: Flask) -> None:
    (home / "secret.txt").touch()
    bob = Browser(app).log_in("bob")
    assert names(bob.get("/files/home").text) == ["storage"]
    assert bob.get("/files/home/secret.txt").status_code == 404
    assert bob.get("/files-ask/entry/home/secret.txt").status_code == 404


def test_a_folder_is_shared_and_taken_back_on_the_start_page(home: Path, alice: Browser) -> None:
    (home / "storage" / "data").mkdir()
    fields = {"kind": "user", "name": "nobody", "access": "read"}
    assert alice.post("/files-shares/data", fields).status_code == 200
    assert "<bdi>nobody</bdi>" in alice.get("/files").text
    shares = alice.get("/files-shares/data").get_json()["shares"]
    known = {"kind": "user", "name": "nobody", "access": "read", "state": "given"}
    assert shares == [known]
    answer = alice.post("/files-shares/data", fields | {"access": ""})
    assert (answer.status_code, answer.get_json()) == (200, {"running": False})
    assert "<bdi>nobody</bdi>" not in alice.get("/files").text


@pytest.mark.parametrize(
    ("folder", "change", "status"),
    [
        ("data", {"kind": "world"}, 422),
        ("data", {"name": ""}, 422),
        ("data", {"access": "execute"}, 422),
        ("data", {"access": ""}, 404),
        ("missing", {}, 404),
    ],
)
def test_shares_that_cannot_be_are_refused_in_words(
    home: Path, alice: Browser, folder: str, change: dict[str, str], status: int
) -> None:
    (home / "storage" / "data").mkdir()
    fields = {"kind": "user", "name": "nobody", "access": "read"} | change
    answer = alice.post(f"/files-shares/{folder}", fields)
    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json")
    assert answer.get_json()["detail"]


def test_the_page_asks_before_others_lose_a_folder(home: Path, alice: Browser) -> None:
    (home / "storage" / "data").mkdir()
    form = {"kind": "user", "name": "nobody", "access": "read"}  # an account of this machine
    assert alice.post("/files-shares/data", form).status_code == 200
    use = alice.get("/files-ask/uses/storage/data").get_json()
    assert use["lost"] == "“data” is shared with nobody (may read it), who lose it."
    assert "under its new name" in use["renamed"]
    assert alice.get("/files-ask/uses/home/x").get_json() == {"lost": "", "renamed": ""}
    assert alice.get("/files-ask/uses/storage/none").status_code == 404
    order = {"kind": "delete", "items": ["storage/data"], "end_shares": False}
    refused = alice.post("/files-ask/operations", {"body": json.dumps(order)})
    assert (refused.status_code, refused.get_json()["code"]) == (409, "shared")
    body = json.dumps(order | {"end_shares": True})
    assert alice.post("/files-ask/operations", {"body": body}).status_code == 200
    assert not (home / "storage" / "data").exists()


def test_a_folder_is_shared_from_inside(home: Path, alice: Browser) -> None:
    (home / "storage" / "a b" / "deep").mkdir(parents=True)
    (home / "other").mkdir()
    for place in ("storage/a%20b", "storage/a%20b/deep"):
        page = alice.get(f"/files/{place}").text
        assert 'data-storage-share data-path="storage/a%20b" data-name="a b"' in page
    for place in ("storage", "home", "home/other"):
        assert "data-storage-share" not in alice.get(f"/files/{place}").text


def test_what_others_share_has_its_own_place(world: World, app: Flask, alice: Browser) -> None:
    folder = world.file_servers.home("bob") / "storage" / "theirs"
    folder.mkdir()
    bob = Browser(app).log_in("bob")
    fields = {"kind": "user", "name": "alice", "access": "write"}
    assert bob.post("/files-shares/theirs", fields).status_code == 200
    page = alice.get("/files").text
    assert 'href="/files/shared/bob/theirs"' in page
    assert "of bob, you may change it" in page


def test_a_file_opens_in_jupyterlab_of_a_session_that_has_it(
    world: World, home: Path, alice: Browser, launched: Callable[..., Runner]
) -> None:
    world.slurm.files["/home/alice/storage/data/"] = b""
    (home / "storage" / "data").mkdir()
    (home / "storage" / "data" / "a b.ipynb").write_text("{}")
    runner = launched("alice", mounts=["data"])
    address = "/files/storage/data/a%20b.ipynb?view"
    assert "Open in JupyterLab" not in alice.get(address).text, "it is not running yet"
    assert runner.ready().status_code == 200
    page = alice.get(address).text
    assert "Open in JupyterLab" in page
    assert 'name="file" value="data/a%20b.ipynb"' in page
    action = re.search(r'action="(/sessions/[^"]*/apps/jupyterlab/open)"', page)
    assert action is not None
    answer = alice.post(action[1], {"file": "data/a%20b.ipynb"})
    query = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert query["next"] == ["/lab/tree/data/a%20b.ipynb"]
    assert "Mounted in" in alice.get("/files").text
