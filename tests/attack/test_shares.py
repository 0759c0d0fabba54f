"""P3: what is shared stays in its place or is no longer shared, through all doors and names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from tests.attack.conftest import LoggedIn
from tests.support.client import Api
from tests.support.cluster import Cluster
from tests.support.cluster_file_servers import send_request

STORAGE = "/home/alice/storage"
SPELLINGS = ["storage/p3", "storage//p3", "%73torage/p3", "storage/%703", "home/storage/p3"]
FOLDERS = ("p3", "p3-moved")
WITH_BOB = "/folders/{}/shares/user/bob"


@pytest.fixture(autouse=True)
def folder(cluster: Cluster, alice: Api) -> Iterator[None]:
    """A folder that alice shares with bob, with files that nobody else may read."""
    clean = f"rm -rf {STORAGE}/p3* ~/p3* ~/sub; chmod 711 ~"
    cluster.shell("login", clean, user="alice")
    make = f"umask 077; mkdir -p {STORAGE}/p3/sub; echo secret | tee {STORAGE}/p3/sub/file"
    cluster.shell("login", f"{make} > {STORAGE}/p3/file", user="alice")
    alice.ask("PUT", WITH_BOB.format("p3"), 200, json={"access": "read"})
    assert bob_reads(cluster, f"{STORAGE}/p3/file")
    yield
    for name in FOLDERS:
        alice("DELETE", WITH_BOB.format(name))
    cluster.shell("login", f"{clean}; chmod 700 ~", user="alice")


def bob_reads(cluster: Cluster, path: str) -> bool:
    """Whether bob's account can read a file of alice's on the login node."""
    return "secret" in cluster.shell("login", f"cat {path} 2>&1", user="bob", check=False)


def listed(alice: Api) -> list[str]:
    """The folders that alice shares, as far as these tests have them."""
    found = []
    for name in FOLDERS:
        answer = alice("GET", f"/folders/{name}/shares")
        if answer.ok and answer.json()["shares"]:
            found.append(name)
    return found


def seen_by(bob: Api) -> list[str]:
    """The folders of hers that bob is told of."""
    found = [one["name"] for one in bob.ask("GET", "/folders/shared")["folders"]]
    return [name for name in found if name.startswith("alice/p3")]


def dav(api: Api, method: str, path: str, to: str = "") -> requests.Response:
    headers = {"Destination": f"/data/dav/{to}"} if to else {}
    return send_request(api, method, f"/data/dav/{path}", headers=headers)


@pytest.mark.parametrize("path", SPELLINGS)
def test_p3_webdav_takes_no_shared_folder_away(
    cluster: Cluster, alice: Api, bob: Api, path: str
) -> None:
    for answer in (
        dav(alice, "MOVE", path, "home/p3-moved"),
        dav(alice, "MOVE", path, "storage/p3-moved"),
        dav(alice, "DELETE", path),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "shared"), answer.text
    assert bob_reads(cluster, f"{STORAGE}/p3/sub/file")
    assert (listed(alice), seen_by(bob)) == (["p3"], ["alice/p3"])


@pytest.mark.parametrize("path", SPELLINGS)
def test_p3_an_operation_ends_access_before(
    cluster: Cluster, alice: Api, bob: Api, path: str
) -> None:
    order = {"kind": "move", "items": [path], "to": "home"}
    refused = alice.ask("POST", "/files/operations", 409, json=order)
    assert "shared with bob" in refused["detail"]
    assert listed(alice) == ["p3"]
    alice.ask("POST", "/files/operations", 202, json=order | {"end_shares": True})
    assert cluster.shell("login", "cat ~/p3/file", user="alice") == "secret\n"
    assert not bob_reads(cluster, "/home/alice/p3/file")
    assert not bob_reads(cluster, "/home/alice/p3/sub/file")
    assert (listed(alice), seen_by(bob)) == ([], [])


@pytest.mark.parametrize("path", SPELLINGS)
def test_p3_a_rename_takes_the_share_along(
    cluster: Cluster, alice: Api, bob: Api, path: str
) -> None:
    alice.ask("POST", f"/files/rename/{path}", 200, json={"name": "p3-moved"})
    assert bob_reads(cluster, f"{STORAGE}/p3-moved/file")
    assert (listed(alice), seen_by(bob)) == (["p3-moved"], ["alice/p3-moved"])
    assert alice("DELETE", WITH_BOB.format("p3-moved")).status_code == 204
    assert not bob_reads(cluster, f"{STORAGE}/p3-moved/file")


def test_p3_what_is_moved_out_takes_no_access_along(cluster: Cluster, alice: Api, bob: Api) -> None:
    assert dav(alice, "MOVE", "storage//p3/sub", "home/sub").status_code == 201
    order = {
        "kind": "move",
        "items": ["%73torage/p3/file"],
        "to": "home/sub",
        "on_conflict": "rename",
    }
    alice.ask("POST", "/files/operations", 202, json=order)
    moved = cluster.shell("login", "ls ~/sub", user="alice").splitlines()
    assert moved == ["file", "file (2)"]
    cluster.shell("login", "chmod 755 ~/sub", user="alice")
    for name in ("file", "file\\ \\(2\\)"):
        assert not bob_reads(cluster, f"/home/alice/sub/{name}")
    assert (listed(alice), seen_by(bob)) == (["p3"], ["alice/p3"])


def test_p3_lists_agree_with_what_was_done_in_a_shell(
    cluster: Cluster, alice: Api, bob: Api, logged_in: LoggedIn
) -> None:
    cluster.shell("login", f"mv {STORAGE}/p3 {STORAGE}/p3-moved", user="alice")
    page = logged_in("alice").get("/files")
    assert page.status_code == 200
    assert (listed(alice), seen_by(bob)) == (["p3-moved"], ["alice/p3-moved"])
    cluster.shell("login", f"rm -rf {STORAGE}/p3-moved", user="alice")
    logged_in("alice").get("/files")
    assert (listed(alice), seen_by(bob)) == ([], [])
