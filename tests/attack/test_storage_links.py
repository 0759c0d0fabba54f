"""Storage folders that are links to places other than storage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.apps import Terminal
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

BARE: Json = {"environment": "busybox", "resources": {"cpus": 1, "memory": "300m"}}
STORAGE = "/home/alice/storage"


@pytest.fixture(autouse=True)
def room(cluster: Cluster) -> Iterator[None]:
    """A folder for links and their targets; removed with the test."""
    cluster.run("login", "mkdir", "-p", STORAGE, user="alice")
    cluster.shell("login", "install -d -m 2770 -o admin -g alice /home/project")
    cluster.shell("login", "install -d -m 755 -o admin -g admin /home/datasets")
    yield
    cluster.shell("login", f"rm -f {STORAGE}/try; rm -rf /home/project /home/datasets")


def link(cluster: Cluster, target: str) -> None:
    cluster.run("login", "ln", "-sfn", target, f"{STORAGE}/try", user="alice")


@pytest.mark.parametrize(
    "target",
    ["/etc", "/", "/usr/share", "/proc", "/run", "/var/log", "/tmp", "/dev", "../.slipway"],
)
def test_a_link_into_the_nodes_system_is_refused_on_the_node(
    cluster: Cluster, alice: Api, target: str
) -> None:
    """34: the node's /etc was at ~/symetc, and Slipway's own folder could be mounted this way."""
    link(cluster, target)
    session = alice.launch(**BARE, mounts=["try"])["id"]
    alice.wait_state(session, "FAILED")

    def has_reason() -> bool:
        words = alice.get(session)["end"]["text"] or ""
        return 'the folder "try" leads to /' in words and "neither yours nor storage" in words

    wait_for("the reason", has_reason)


@pytest.mark.parametrize(
    ("target", "mount"),
    [
        ("/home/alice", {"folder": "try", "read_only": False}),
        ("/home/alice", {"folder": "try", "read_only": True}),
        ("/home/project", {"folder": "try", "read_only": False}),
        ("/home/datasets", {"folder": "try", "read_only": True}),
    ],
)
def test_links_to_own_project_or_shared_folders_are_storage(
    cluster: Cluster, alice: Api, target: str, mount: Json
) -> None:
    """34: sites legitimately link project folders and shared data into users' storage."""
    cluster.shell("login", f"echo here > {target}/seen-by-alice; chmod 644 {target}/seen-by-alice")
    link(cluster, target)
    session = alice.running(**BARE, mounts=[mount])
    window = Terminal(alice.open(session["id"], "terminal"))
    found = window.run(
        "cat ~/try/seen-by-alice; ls -A ~/try/.slipway; cat ~/try/.slipway/key/id_container"
    )
    window.close()
    cluster.run("login", "rm", "-f", f"{target}/seen-by-alice")
    assert "here" in found
    assert "PRIVATE" not in found
    assert "sessions" not in found
