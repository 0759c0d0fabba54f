"""The portal's database is lost while sessions run and wait: it adopts them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.apps import Kernel
from tests.client import Api, Json, login
from tests.cluster import Cluster, healthy, wait_for

SLIPWAY = ("runuser", "--user", "slipway", "--", "slipway")
STATE = "/var/lib/slipway"
ASIDE = f"{STATE}/lost-in-a-test"
SMALL: Json = {"resources": {"cpus": 1, "memory": "300m"}}
SECONDS = 60
"""How soon a lost session is in its owner's list again; half of it if the machine is not busy."""


def slipway(cluster: Cluster, *words: str) -> str:
    """Run the administrator's command as the portal's account."""
    return cluster.run("portal", *SLIPWAY, *words)


def start(cluster: Cluster) -> None:
    """Start the portal and wait for it."""
    cluster.daemon("start", "portal", "web", "worker")
    wait_for("the portal", lambda: healthy(cluster), 60)


@contextmanager
def empty_database(cluster: Cluster) -> Iterator[None]:
    """The portal with an empty database; the authorities stay."""
    cluster.daemon("stop", "portal", "web", "worker")
    cluster.shell("portal", f"mkdir {ASIDE} && mv {STATE}/slipway.db* {ASIDE}")
    try:
        slipway(cluster, "init")
        start(cluster)
        yield
    finally:
        cluster.daemon("stop", "portal", "web", "worker")
        cluster.shell("portal", f"rm -f {STATE}/slipway.db*; mv {ASIDE}/* {STATE} && rmdir {ASIDE}")
        start(cluster)


def waiting(alice: Api) -> Json:
    """A session that waits, since its owner may not have more cores at once."""
    session = alice.launch(resources={"cpus": 2, "memory": "300m"})
    return alice.wait_state(session["id"], "PENDING")


def listed(api: Api, session: str, state: str) -> Json:
    """Wait until a session is in its owner's list in this state."""

    def there() -> Json | None:
        found = [one for one in api.list() if one["id"] == session and one["state"] == state]
        return found[0] if found else None

    return wait_for(f"{session} in the list", there, SECONDS)


def forge(cluster: Cluster, session: str, spec: Json) -> str:
    """A job of bob's with the name of a session of alice's, and what belongs to it in his home."""
    folder = f".slipway/sessions/{session}"
    own = json.dumps(spec | {"session": session, "token": "a-token-of-bobs-own"})
    script = (
        f"mkdir -p {folder}/tmp && cat > {folder}/spec.json && "
        f"printf %s a-token-of-bobs-own | sha256sum | cut -c1-64 > {folder}/tmp/.slipway-runner && "
        f"sbatch --parsable --job-name={session} --mem=100M --begin=now+1hour --wrap 'sleep 60'"
    )
    return cluster.run("login", "sh", "-c", f"cd; {script}", user="bob", stdin=own).strip()


@pytest.mark.timeout(300)
def test_an_empty_database(alice: Api, cluster: Cluster) -> None:
    session = alice.running(resources={"cpus": 2, "memory": "400m"})
    lab = alice.open(session["id"], "jupyterlab")
    kernel = Kernel(lab)
    kernel.connect()
    assert kernel.run("a = 41").error == ""
    queued = waiting(alice)
    place = f"/home/alice/.slipway/sessions/{queued['id']}/spec.json"
    spec = json.loads(cluster.run("login", "cat", place, user="alice"))
    forged = [forge(cluster, one["id"], spec) for one in (session, queued)]
    try:
        with empty_database(cluster):
            begun = time.monotonic()
            again = Api(cluster, "alice", login(cluster, "alice"))
            found = listed(again, session["id"], "RUNNING")
            assert listed(again, queued["id"], "PENDING")["job_id"]
            assert time.monotonic() - begun < SECONDS
            for name in ("name", "environment", "version", "job_id", "node", "resources"):
                assert found[name] == session[name], name
            # Logins and what they had opened are lost; a new one opens the app, which went on.
            fresh = again.open(session["id"], "jupyterlab")
            assert [one["id"] for one in fresh.get("/api/kernels").json()] == [kernel.id]
            bob = Api(cluster, "bob", login(cluster, "bob"))
            assert bob.list() == []
            assert again.stop(session["id"])["state"] in ("ENDING", "FINISHED")
            again.wait_state(session["id"], "FINISHED")
            started = again.wait_state(queued["id"], "RUNNING")
            again.open(started["id"], "terminal").get("/")
    finally:
        cluster.run("login", "scancel", *forged, user="bob")
        cluster.run("login", "sh", "-c", "rm -rf ~/.slipway/sessions/*", user="bob")
    # The database that was lost is back, and believes that the session still runs.
    assert alice.wait_state(session["id"], "FINISHED")["end"]["text"]
    assert alice.wait_state(queued["id"], "RUNNING")["node"] == started["node"]
    alice.open(queued["id"], "terminal").get("/")


@pytest.mark.timeout(300)
def test_an_older_backup(alice: Api, cluster: Cluster) -> None:
    folder = f"{STATE}-backup"
    cluster.shell("portal", f"install -d -o slipway -m 700 {folder}")
    first = alice.running(resources={"cpus": 2, "memory": "300m"})
    queued = waiting(alice)
    slipway(cluster, "backup", f"{folder}/one")
    alice.stop(first["id"])
    alice.wait_state(first["id"], "FINISHED")
    alice.wait_state(queued["id"], "RUNNING")
    later = alice.running(**SMALL)
    cluster.daemon("stop", "portal", "web", "worker")
    slipway(cluster, "restore", f"{folder}/one", "--force")
    start(cluster)
    # Unknown to the backup, waiting in it, and running in it.
    assert listed(alice, later["id"], "RUNNING")["name"] == later["name"]
    assert alice.wait_state(queued["id"], "RUNNING", seconds=SECONDS)["node"]
    alice.wait_state(first["id"], "FINISHED")
    for one in (later, queued):
        alice.open(one["id"], "terminal").get("/")
    cluster.shell("portal", f"rm -rf {folder} {STATE}/replaced-*")
