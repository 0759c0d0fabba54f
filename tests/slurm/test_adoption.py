"""The portal's database is lost while sessions run and wait: it adopts them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.support.apps import Kernel
from tests.support.client import Api, Json, login
from tests.support.cluster import Cluster, healthy, wait_for

SLIPWAY = ("runuser", "--user", "slipway", "--", "slipway")
STATE = "/var/lib/slipway"
ASIDE = f"{STATE}/lost-in-a-test"
SMALL: Json = {"resources": {"cpus": 1, "memory": "300m"}}
SECONDS = 180
"""How soon a lost session is listed again; half a minute if the machine is not busy."""
CLAIM = """
import json, ssl, sys, urllib.error, urllib.request
told = json.loads(sys.stdin.read())
context = ssl.create_default_context(cadata=told["ca"])
context.verify_flags &= ~ssl.VERIFY_X509_STRICT
headers = {"Authorization": "Bearer " + told["token"], "Content-Type": "application/json",
           "Slipway-Runner": "2"}
request = urllib.request.Request(told["url"], json.dumps(told["body"]).encode(), headers)
try:
    print(urllib.request.urlopen(request, timeout=60, context=context).status)
except urllib.error.HTTPError as error:
    print(error.code, json.loads(error.read() or b"{}").get("code", ""))
"""
"""What bob's own program on a node asks, as a runner does."""
BOBS = "a-token-of-bobs-own"


def slipway(cluster: Cluster, *words: str) -> str:
    """Run the administrator's command as the portal's account."""
    return cluster.run("portal", *SLIPWAY, *words)


def start(cluster: Cluster) -> None:
    """Start the portal and wait for it."""
    cluster.daemon("start", "portal", "web", "worker")
    wait_for("the portal", lambda: healthy(cluster), 180)


@contextmanager
def empty_database(cluster: Cluster) -> Iterator[None]:
    """The portal with an empty database; the authorities stay."""
    _stop(cluster)
    cluster.shell("portal", f"mkdir {ASIDE} && mv {STATE}/slipway.db* {ASIDE}")
    try:
        slipway(cluster, "init")
        start(cluster)
        yield
    finally:
        _stop(cluster)
        cluster.shell("portal", f"rm -f {STATE}/slipway.db*; mv {ASIDE}/* {STATE} && rmdir {ASIDE}")
        start(cluster)


def _stop(cluster: Cluster) -> None:
    """Stop the portal; what is stopped already stays so."""
    for name in ("web", "worker"):
        cluster.attempt("daemon", "stop", "portal", name)


@pytest.fixture
def in_maintenance(cluster: Cluster) -> Iterator[None]:
    """What is launched waits for hours."""
    until = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M+00:00}"
    slipway(cluster, "maintenance", "on", "--until", until, "--message", "A test")
    yield
    slipway(cluster, "maintenance", "off")


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


class Bob:
    """Somebody who knows the code, and all that Slurm shows of alice's jobs."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ca = cluster.run("portal", "cat", f"{STATE}/ca/gateway_ca.pem")

    def forge(self, session: str, spec: Json, *options: str) -> str:
        """A job with the name of a session of alice's, and what belongs to it in his home."""
        folder = f".slipway/sessions/{session}"
        script = (
            f"mkdir -p {folder}/tmp && cat > {folder}/spec.json && "
            f"printf %s {BOBS} | sha256sum | cut -c1-64 > {folder}/tmp/.slipway-runner && "
            f"sbatch --parsable --job-name={session} --mem=100M --comment={session} "
            f"{' '.join(options)} --wrap 'sleep 600'"
        )
        own = json.dumps(spec | {"session": session, "token": BOBS})
        words = ("sh", "-c", f"cd; {script}")
        return self._cluster.run("login", *words, user="bob", stdin=own).strip()

    def claim(self, session: str, job: str, node: str) -> str:
        """Ask for a session, as its runner does; the answer."""
        told = {
            "url": f"https://portal:8443/runner/v1/sessions/{session}/adopt",
            "ca": self._ca,
            "token": BOBS,
            "body": {"job_id": job, "node": node, "about": {"owner": "bob", "name": "mine"}},
        }
        words = ("python3", "-c", CLAIM)
        return self._cluster.run("n1", *words, user="bob", stdin=json.dumps(told)).strip()

    def clean(self) -> None:
        """End his jobs, and delete what he has written."""
        self._cluster.run("login", "scancel", "--user=bob", user="bob", check=False)
        self._cluster.run("login", "sh", "-c", "rm -rf ~/.slipway/sessions/*", user="bob")


@pytest.fixture
def attacker(cluster: Cluster) -> Iterator[Bob]:
    """Bob; nothing of his stays."""
    found = Bob(cluster)
    yield found
    found.clean()


@pytest.mark.timeout(1500)
def test_an_empty_database(alice: Api, cluster: Cluster, attacker: Bob) -> None:
    session = alice.running(resources={"cpus": 2, "memory": "400m"})
    lab = alice.open(session["id"], "jupyterlab")
    kernel = Kernel(lab)
    kernel.connect()
    assert kernel.run("a = 41").error == ""
    queued = waiting(alice)
    place = f"/home/alice/.slipway/sessions/{queued['id']}/spec.json"
    spec = json.loads(cluster.run("login", "cat", place, user="alice"))
    runs, waits = session["id"], queued["id"]
    claims = []
    for one, job, node in (
        (runs, session["job_id"], session["node"]),
        (waits, queued["job_id"], "n1"),
    ):
        attacker.forge(one, spec, "--begin=now+1hour")
        forged = attacker.forge(one, spec)
        wait_for("bob's job", partial(_runs, cluster, forged), SECONDS)
        own = running(cluster)[forged]
        claims += [(one, forged, own), (one, job, node)]
    with empty_database(cluster):
        again = Api(cluster, "alice", login(cluster, "alice"))
        refused = "404 session_unknown"
        assert [attacker.claim(*each) for each in claims] == [refused] * len(claims)
        found = listed(again, runs, "RUNNING")
        assert listed(again, waits, "PENDING")["job_id"] == queued["job_id"]
        assert [attacker.claim(*each) for each in claims] == [refused] * len(claims)
        for name in ("name", "environment", "version", "job_id", "node", "resources"):
            assert found[name] == session[name], name
        # Logins and what they had opened are lost; a new one opens the app, which went on.
        fresh = again.open(runs, "jupyterlab")
        assert [one["id"] for one in fresh.get("/api/kernels").json()] == [kernel.id]
        bob = Api(cluster, "bob", login(cluster, "bob"))
        assert bob.list() == []
        assert bob("GET", f"/sessions/{runs}").status_code == 404
        assert again.stop(runs)["state"] in ("ENDING", "FINISHED")
        again.wait_state(runs, "FINISHED", seconds=SECONDS)
        started = again.wait_state(waits, "RUNNING", seconds=SECONDS)
        again.open(waits, "terminal").get("/")
    # The database that was lost is back, and believes that the session still runs.
    assert alice.wait_state(runs, "FINISHED", seconds=SECONDS)["end"]["text"]
    assert alice.wait_state(waits, "RUNNING", seconds=SECONDS)["node"] == started["node"]
    alice.open(waits, "terminal").get("/")


def _runs(cluster: Cluster, job: str) -> bool:
    return job in running(cluster)


def running(cluster: Cluster) -> dict[str, str]:
    """The nodes of all jobs that run."""
    text = cluster.run("login", "squeue", "--all", "--noheader", "--states=R", "-o%i %N")
    return dict(line.split() for line in text.splitlines())


@pytest.mark.timeout(900)
def test_what_waited_for_a_maintenance_that_is_lost_starts(
    alice: Api, cluster: Cluster, in_maintenance: None
) -> None:
    session = alice.launch(**SMALL)["id"]
    assert alice.wait_state(session, "PENDING")["reason"]["code"] == "Maintenance"
    with empty_database(cluster):
        again = Api(cluster, "alice", login(cluster, "alice"))
        again.wait_state(listed_at_all(again, session)["id"], "RUNNING", seconds=SECONDS)
    assert alice.wait_state(session, "RUNNING", seconds=SECONDS)["node"]


def listed_at_all(api: Api, session: str) -> Json:
    """Wait until a session is in its owner's list."""

    def there() -> Json | None:
        return next((one for one in api.list() if one["id"] == session), None)

    return wait_for(f"{session} in the list", there, SECONDS)


@pytest.fixture
def backups(cluster: Cluster) -> Iterator[str]:
    """A folder for a backup; neither it nor what a restore has replaced stays."""
    folder = f"{STATE}-backup"
    cluster.shell("portal", f"rm -rf {folder}; install -d -o slipway -m 700 {folder}")
    yield folder
    cluster.attempt("daemon", "start", "portal", "web")
    cluster.attempt("daemon", "start", "portal", "worker")
    cluster.shell("portal", f"rm -rf {folder} {STATE}/replaced-*")
    wait_for("the portal", lambda: healthy(cluster), 180)


@pytest.mark.timeout(900)
def test_an_older_backup(alice: Api, cluster: Cluster, backups: str) -> None:
    first = alice.running(resources={"cpus": 2, "memory": "300m"})
    queued = waiting(alice)
    slipway(cluster, "backup", f"{backups}/one")
    alice.stop(first["id"])
    alice.wait_state(first["id"], "FINISHED", seconds=SECONDS)
    alice.wait_state(queued["id"], "RUNNING", seconds=SECONDS)
    later = alice.running(**SMALL)
    _stop(cluster)
    slipway(cluster, "restore", f"{backups}/one", "--force")
    start(cluster)
    # Unknown to the backup, waiting in it, and running in it.
    assert listed(alice, later["id"], "RUNNING")["name"] == later["name"]
    assert alice.wait_state(queued["id"], "RUNNING", seconds=SECONDS)["node"]
    alice.wait_state(first["id"], "FINISHED", seconds=SECONDS)
    for one in (later, queued):
        alice.open(one["id"], "terminal").get("/")
