"""A desktop is its owner's: no other user of the portal or of its node gets near."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from websockets.exceptions import InvalidStatus

from tests.support.client import Api, Json, Visitor
from tests.support.cluster import Cluster

# Run by bob on alice's node: every listening socket and port, and what answers to him.
LOOK = """
import glob, json, os, socket
found = {"sockets": [], "opened": [], "ports": []}
for line in open("/proc/net/unix").read().splitlines()[1:]:
    words = line.split()
    if len(words) > 7 and words[3] == "00010000":
        found["sockets"].append(words[7])
for path in found["sockets"]:
    if not any(word in path for word in ("X11", "vnc", "slipway", "desktop")):
        continue
    name = "\\0" + path[1:] if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(3)
        try:
            stream.connect(name)
        except OSError:
            continue
        found["opened"].append(path)
for port in (*range(5900, 5910), *range(6000, 6010)):
    with socket.socket() as stream:
        stream.settimeout(3)
        if stream.connect_ex(("127.0.0.1", port)) == 0:
            found["ports"].append(port)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def desktop(researcher: Api, cluster: Cluster) -> Iterator[tuple[Json, Visitor]]:
    """Alice's session with a running desktop, and her browser."""
    if "blackbox" not in cluster.run("portal", "ls", "/srv/slipway/images").split():
        pytest.skip("this cluster has no image blackbox")
    size = {"cpus": 1, "memory": "500m"}
    session = researcher.running(environment="blackbox", resources=size)
    visitor = researcher.open(session["id"], "desktop")
    assert visitor.get("/").status_code == 200
    yield session, visitor
    researcher.clean()


def test_a_neighbour_on_the_node_finds_nothing_that_answers(
    desktop: tuple[Json, Visitor], cluster: Cluster
) -> None:
    session, _ = desktop
    srun = ["srun", "--quiet", f"--nodelist={session['node']}", "--mem=100M", "--ntasks=1"]
    said = cluster.run("login", *srun, "python3", "-", user="bob", stdin=LOOK, seconds=120)
    found = json.loads(said)
    assert any(path.endswith("/vnc.sock") for path in found["sockets"]), "no desktop on this node"
    assert not [path for path in found["sockets"] if path.startswith("@/tmp/.X11")]
    assert found["opened"] == []
    assert found["ports"] == []


def test_another_user_gets_no_page_and_no_connection(
    desktop: tuple[Json, Visitor], bob: Api, cluster: Cluster
) -> None:
    session, visitor = desktop
    answer = bob("POST", f"/sessions/{session['id']}/apps/desktop")
    missing = bob("POST", "/sessions/00000000000000000000000000000000/apps/desktop")
    assert (answer.status_code, missing.status_code) == (404, 404)
    stranger = Visitor(visitor.origin)
    assert "vnc" not in stranger.get("/").text
    with pytest.raises(InvalidStatus) as refused:
        stranger.websocket("/vnc")
    assert refused.value.response.status_code != 101


def test_a_page_of_another_origin_cannot_use_her_cookie(
    desktop: tuple[Json, Visitor],
) -> None:
    _, visitor = desktop
    with visitor.websocket("/vnc") as stream:
        assert stream.recv(10) == b"RFB 003.008\n"
    with pytest.raises(InvalidStatus) as refused:
        visitor.websocket("/vnc", origin="https://evil.example.org")
    assert refused.value.response.status_code in (401, 403)
