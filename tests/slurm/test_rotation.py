"""Authorities are rotated while a session runs and a notebook is open: neither notices."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from websockets.sync.client import ClientConnection

from tests.support.apps import Kernel
from tests.support.client import Api, Json, Visitor
from tests.support.cluster import Cluster, wait_for

TRUSTED = "/etc/slipway/trust/user_ca.pub"
SLIPWAY = ("runuser", "--user", "slipway", "--", "slipway")
RENEWED = "uses the portal's new certificates"


def slipway(cluster: Cluster, *words: str) -> str:
    """Run the administrator's command as the portal's account."""
    return cluster.run("portal", *SLIPWAY, *words)


def refused(cluster: Cluster, *words: str) -> str:
    """The same, if it is to be refused; returns what it said."""
    done = cluster.attempt("exec", "portal", "--", *SLIPWAY, *words)
    assert done.returncode == 1, done.stdout
    return done.stderr


@pytest.fixture(autouse=True)
def finished(cluster: Cluster) -> None:
    """No rotation of an earlier test is left."""
    if "not begun" not in slipway(cluster, "rotate", "gateways"):
        slipway(cluster, "rotate", "gateways", "--finish", "--force")
        cluster.daemon("reload", "portal", "haproxy")


@pytest.fixture
def lab(alice: Api) -> Visitor:
    """JupyterLab in a session of alice's."""
    return alice.open(alice.running()["id"], "jupyterlab")


@pytest.fixture
def stream(lab: Visitor) -> Iterator[ClientConnection]:
    """A stream of that notebook's server."""
    socket = lab.websocket("/api/events/subscribe")
    yield socket
    socket.close()


def log_of(cluster: Cluster, session: str) -> str:
    """A session's log."""
    return cluster.run("login", "cat", f"/home/alice/.slipway/logs/{session}.log")


def renewals(cluster: Cluster, session: str, times: int) -> None:
    """Wait until a session has followed so many times."""
    wait_for(
        "a session to follow", lambda: log_of(cluster, session).count(RENEWED) >= times, 40, pause=1
    )


def reload(cluster: Cluster, lab: Visitor) -> None:
    """Reload HAProxy, which for a moment does not know the routes."""
    cluster.daemon("reload", "portal", "haproxy")
    time.sleep(2)
    wait_for("the routes", lambda: lab.get("/api/status").status_code == 200, 20)


def is_open(lab: Visitor, stream: ClientConnection) -> None:
    """The stream lives, and requests on new connections are answered."""
    assert stream.ping().wait(10)
    for _ in range(5):
        assert lab.get("/api/status").status_code == 200


@pytest.mark.timeout(300)
def test_gateways_in_two_steps(
    alice: Api, bob: Api, cluster: Cluster, lab: Visitor, stream: ClientConnection
) -> None:
    (session,) = alice.launched
    kernel = Kernel(lab)
    kernel.connect()
    assert kernel.run("a = 41").error == ""
    waiting: Json = bob.launch(resources={"cpus": 1, "memory": "300m"})
    slipway(cluster, "rotate", "gateways", "--begin")
    is_open(lab, stream)  # HAProxy has not been reloaded
    other = bob.wait_state(waiting["id"], "RUNNING")
    bob.open(other["id"], "terminal").get("/")
    reload(cluster, lab)
    is_open(lab, stream)
    renewals(cluster, session, 1)
    is_open(lab, stream)
    assert kernel.run("print(a + 1)").text.strip() == "42"
    between = bob.running(resources={"cpus": 1, "memory": "300m"})

    def last_step() -> bool:
        """The last step is refused until bob's session has followed, too."""
        words = ("exec", "portal", "--", *SLIPWAY, "rotate", "gateways", "--finish")
        return cluster.attempt(*words).returncode == 0

    wait_for("the last step", last_step, 60, pause=2)
    is_open(lab, stream)
    reload(cluster, lab)
    is_open(lab, stream)
    renewals(cluster, session, 2)
    # A worker of HAProxy from before the reload may have kept connections: these are new ones.
    is_open(lab, stream)
    assert kernel.run("print(a + 1)").text.strip() == "42"
    alice.open(session, "terminal").get("/")
    for one in (other, between):
        assert bob.get(one["id"])["state"] == "RUNNING"
        bob.open(one["id"], "jupyterlab").get("/lab")
    after = bob.running(resources={"cpus": 1, "memory": "300m"})
    bob.open(after["id"], "terminal").get("/")
    trusted = cluster.shell("portal", "grep -c BEGIN /var/lib/slipway/ca/gateway_ca.pem")
    assert trusted.strip() == "1"


@pytest.mark.timeout(200)
def test_a_session_that_cannot_follow_is_named(alice: Api, cluster: Cluster) -> None:
    """Its runner is stopped, as on a node that does not answer."""
    session = alice.running()
    node = session["node"]
    runner = f"pgrep -f 'job-id {session['job_id']} ' | head -1"
    cluster.shell(node, f"kill -STOP $({runner})")
    try:
        slipway(cluster, "rotate", "gateways", "--begin")
        told = refused(cluster, "rotate", "gateways", "--finish")
        assert f"alice  {session['name']}  RUNNING on {node}" in told
    finally:
        cluster.shell(node, f"kill -CONT $({runner})")
    renewals(cluster, session["id"], 1)
    slipway(cluster, "rotate", "gateways", "--finish")
    cluster.daemon("reload", "portal", "haproxy")
    alice.open(session["id"], "terminal").get("/")


@pytest.mark.timeout(200)
def test_the_users_authority(
    alice: Api, bob: Api, cluster: Cluster, lab: Visitor, stream: ClientConnection
) -> None:
    earlier = cluster.run("portal", "cat", TRUSTED)
    told = slipway(cluster, "rotate", "user", "--begin")
    line = next(row for row in told.splitlines() if row.startswith("ssh-ed25519 "))
    assert line.split()[2] == "slipway"
    assert "does not accept the next key yet" in refused(cluster, "rotate", "user", "--finish")
    bob.running(resources={"cpus": 1, "memory": "300m"})  # still with the earlier key
    cluster.run("portal", "sh", "-c", f"cat >> {TRUSTED}", stdin=f"{line}\n")
    told = slipway(cluster, "rotate", "user", "--finish")
    assert earlier.strip() in told
    # What the portal has open would hide it if the new key were not used.
    cluster.run("portal", "sh", "-c", f"cat > {TRUSTED}", stdin=f"{line}\n")
    cluster.daemon("restart", "portal", "web", "worker")
    is_open(lab, stream)
    wait_for("a launch", lambda: alice("GET", "/sessions").status_code == 200, 40)
    alice.running()
    assert len(alice.launched) == 2
