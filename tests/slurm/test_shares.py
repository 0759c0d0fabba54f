"""Folders that one user shares with another: seen, mounted, and lost again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.apps import Terminal
from tests.support.client import OVER, Api
from tests.support.cluster import Cluster, wait_for

FOLDER = "/home/alice/storage/trial"
BOB = "/folders/trial/shares/user/bob"
NAME = "alice/trial"


@pytest.fixture(autouse=True)
def _tidy(cluster: Cluster, alice: Api) -> Iterator[None]:
    """Alice has a folder with a file; her home is closed to others, before and after."""
    clean = f"rm -rf {FOLDER} {FOLDER}-real; chmod 700 /home/alice"
    cluster.shell("login", clean, user="alice")
    alice.ask("POST", "/folders", 201, json={"name": "trial"})
    cluster.shell("login", f"echo hello > {FOLDER}/hello", user="alice")
    yield
    alice("DELETE", BOB)
    cluster.shell("login", clean, user="alice")


def as_bob(cluster: Cluster, command: str) -> str:
    """What a command of bob's prints on the login node, its errors too."""
    return cluster.shell("login", f"({command}) 2>&1", user="bob", check=False).strip()


def in_session(api: Api, session: str, *commands: str) -> list[str]:
    """What commands print in a session's terminal."""
    window = Terminal(api.open(session, "terminal"))
    try:
        return [window.run(command) for command in commands]
    finally:
        window.close()


def end(api: Api, session: str) -> None:
    api.stop(session)
    api.wait_state(session, *OVER)


def acl(cluster: Cluster, path: str) -> str:
    """The access control list of a directory of alice's, in hexadecimal; "" without one."""
    code = f"import os; print(os.getxattr({path!r}, 'system.posix_acl_access').hex())"
    return cluster.shell("login", f'python3 -c "{code}" 2>/dev/null', user="alice", check=False)


def test_a_share_is_read_written_and_lost(alice: Api, bob: Api, cluster: Cluster) -> None:
    assert "Permission denied" in as_bob(cluster, f"cat {FOLDER}/hello")
    unknown = alice.ask("PUT", "/folders/trial/shares/user/n0-such", 200, json={"access": "read"})
    given = alice.ask("PUT", BOB, 200, json={"access": "read"})
    assert unknown["change"] == given["change"], "nobody learns who exists"
    alice("DELETE", "/folders/trial/shares/user/n0-such")
    assert [one["name"] for one in bob.ask("GET", "/folders/shared")["folders"]] == [NAME]

    seen = bob.ask("GET", f"/files/list/shared/{NAME}")
    assert [entry["path"] for entry in seen["entries"]] == [f"shared/{NAME}/hello"]

    # Read-only, whatever the launch asks for.
    session = bob.running(mounts=[NAME])
    assert session["mounts"] == [{"folder": NAME, "read_only": True, "path": "~/trial"}]
    read, write = in_session(bob, session["id"], "cat ~/trial/hello", "touch ~/trial/new")
    assert "hello" in read
    assert "Read-only file system" in write
    assert "Permission denied" in as_bob(cluster, f"touch {FOLDER}/new")
    assert "Permission denied" in as_bob(cluster, "ls /home/alice")

    alice.ask("PUT", BOB, 200, json={"access": "write"})
    writer = bob.running(mounts=[NAME])
    in_session(bob, writer["id"], "mkdir ~/trial/sub; echo mine > ~/trial/sub/file")
    # What he creates is his own; the folder's owner can read and delete it.
    remove = f"stat -c %U {FOLDER}/sub; cat {FOLDER}/sub/file; rm -r {FOLDER}/sub"
    assert cluster.shell("login", remove, user="alice").split() == ["bob", "mine"]
    end(bob, writer["id"])

    # Taken back: gone for all that starts later. What runs keeps the mount, and in it what the
    # files' own permissions let anybody read.
    assert alice("DELETE", BOB).status_code == 204
    assert bob.ask("GET", "/folders/shared") == {"folders": []}
    assert "Permission denied" in as_bob(cluster, f"cat {FOLDER}/hello")
    assert acl(cluster, FOLDER) == acl(cluster, "/home/alice") == ""
    lost, never = (bob("GET", f"/files/list/shared/{name}") for name in (NAME, "n0-such/trial"))
    assert (lost.status_code, lost.json()) == (404, never.json())
    refused = bob.ask("POST", "/sessions", 422, json=_launch(NAME))
    unknown_owner = bob.ask("POST", "/sessions", 422, json=_launch("n0-such/trial"))
    assert _messages(refused) == {"mounts.0": f"no folder {NAME} is shared with you"}
    assert _messages(unknown_owner) == {"mounts.0": "no folder n0-such/trial is shared with you"}
    assert "hello" in in_session(bob, session["id"], "cat ~/trial/hello")[0]
    cluster.shell("login", f"chmod 700 {FOLDER}", user="alice")
    assert "Permission denied" in in_session(bob, session["id"], "cat ~/trial/hello")[0]


def test_a_folder_that_is_exchanged_for_a_link_is_not_mounted(
    alice: Api, bob: Api, cluster: Cluster
) -> None:
    alice.ask("PUT", BOB, 200, json={"access": "read"})
    exchange = f"mv {FOLDER} {FOLDER}-real; ln -s /home/bob {FOLDER}"
    cluster.shell("login", exchange, user="alice")
    session = bob.launch(mounts=[NAME])["id"]
    bob.wait_state(session, "FAILED")
    reason = f'the folder "{NAME}" is no longer shared with you'
    wait_for("the reason", lambda: reason in str(bob.get(session)["end"]), 20)


EXCHANGE = f"""
import ctypes, os, time
libc = ctypes.CDLL(None)
end = time.monotonic() + 150
while time.monotonic() < end and os.path.lexists("{FOLDER}-real"):
    libc.renameat2(-100, b"{FOLDER}", -100, b"{FOLDER}-real", 2)  # RENAME_EXCHANGE
    time.sleep(0.02)
"""
LAUNCHES = 8


@pytest.fixture
def exchanged(alice: Api, cluster: Cluster) -> Iterator[None]:
    """Alice's folder, which bob may read, is a link to his home at every other moment."""
    alice.ask("PUT", BOB, 200, json={"access": "read"})
    begin = f"ln -s /home/bob {FOLDER}-real; python3 -c '{EXCHANGE}' > /dev/null 2>&1 &"
    cluster.shell("login", begin, user="alice")
    yield
    cluster.shell("login", f"rm {FOLDER}-real; rm -f {FOLDER}", user="alice", check=False)


@pytest.mark.usefixtures("exchanged")
def test_what_is_exchanged_while_it_is_mounted_is_not_in_a_session(bob: Api) -> None:
    """Else it had his home where he expects a folder of hers, and a public app might show it."""
    seen = [_in_session(bob) for _ in range(LAUNCHES)]
    assert set(seen) <= {"hers", "refused"}, seen
    assert "refused" in seen, seen


@pytest.mark.usefixtures("exchanged")
def test_nor_in_a_batch_job(cluster: Cluster) -> None:
    command = f"slipway srun --image=python --mount={NAME} ls -A {FOLDER}"
    printed = [as_bob(cluster, command) for _ in range(LAUNCHES)]
    refusals = [text for text in printed if text != "hello"]
    words = (
        "was replaced while it was being mounted",
        f"no folder {NAME} is shared with you",
        f"the folder {NAME} is no longer shared with you",
        f"there is no folder {FOLDER}",
    )
    assert refusals
    assert all(any(word in text for word in words) for text in refusals), refusals


def _in_session(bob: Api) -> str:
    """Launch with her folder; what was mounted, or that nothing was."""
    answer = bob("POST", "/sessions", json=_launch(NAME))
    if answer.status_code == 422:
        return "refused"
    session = answer.json()["sessions"][0]["id"]
    if bob.wait_state(session, "RUNNING", "FAILED")["state"] == "FAILED":
        return "refused"
    (listed,) = in_session(bob, session, "ls -A ~/trial")
    end(bob, session)
    return "hers" if "hello" in listed else f"not hers: {listed}"


def _launch(folder: str) -> dict[str, object]:
    return {
        "environment": "python",
        "resources": {"cpus": 1, "memory": "600m"},
        "mounts": [folder],
    }


def _messages(answer: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {error["field"]: error["message"] for error in answer["errors"]}
