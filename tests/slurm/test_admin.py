"""Administrators' decisions on the real cluster: hidden images, the cap, Slurm's limits."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.apps import Terminal
from tests.support.client import OVER, SMALL, Api, Json
from tests.support.cluster import Cluster, in_database, wait_for

LEARNT = 90
"""Seconds after which the worker has read a changed limit (it polls once a minute)."""
MISSING = "9.99"
CLUSTER_LIMITS = "/admin/limits"


@pytest.fixture
def version(admin: Api) -> str:
    """The newest Python version, as the administrator sees it."""
    environments = admin.ask("GET", "/environments")["environments"]
    found = next(e for e in environments if e["name"] == "python")
    return str(found["versions"][0]["version"])


@pytest.fixture
def accounting(cluster: Cluster) -> Iterator[str]:
    """An account that only alice belongs to, removed after the test."""
    name = f"probe{uuid.uuid4().hex[:6]}"
    cluster.run("ctl", "sacctmgr", "-i", "add", "account", name)
    cluster.run("ctl", "sacctmgr", "-i", "add", "user", "alice", f"account={name}")
    yield name
    where = ["where", "name=alice", f"account={name}"]
    cluster.run("ctl", "sacctmgr", "-i", "delete", "user", *where)
    cluster.run("ctl", "sacctmgr", "-i", "delete", "account", name)


@contextmanager
def seen(admin: Api, version: str, rule: Json) -> Iterator[None]:
    """Restrict an image to some users for a while; Slurm's accounts may have to be read first."""
    path = f"/admin/images/python/{version}"
    wait_for("the rule", lambda: admin("PUT", path, json=rule).status_code == 200, LEARNT, 1.0)
    try:
        yield
    finally:
        admin.ask("PUT", path, json={"seen_by": "everybody"})


@contextmanager
def capped(admin: Api, size: str) -> Iterator[None]:
    """Cap shared memory for a while."""
    admin.ask("PUT", "/admin/caps", json={"max_shared_memory": size})
    try:
        yield
    finally:
        admin.ask("PUT", "/admin/caps", json={"max_shared_memory": None})


def test_an_image_is_hidden_from_all_but_one_account(
    admin: Api, alice: Api, bob: Api, version: str, accounting: str, cluster: Cluster
) -> None:
    jobs = set(cluster.queue("bob"))
    kept = bob.launch(version=version)
    with seen(admin, version, {"seen_by": "some", "accounts": [accounting]}):
        hidden = bob("POST", "/sessions", json=SMALL | {"version": version})
        missing = bob("POST", "/sessions", json=SMALL | {"version": MISSING})
        assert hidden.status_code == missing.status_code == 422
        # Word for word, whether or not other versions remain visible to him.
        assert hidden.text.replace(version, MISSING) == missing.text
        offered = bob.ask("GET", "/environments")["environments"]
        found = [v["version"] for e in offered if e["name"] == "python" for v in e["versions"]]
        assert version not in found
        alice.wait_state(alice.launch(version=version)["id"], "RUNNING")
        # A running session keeps its apps.
        bob.wait_state(kept["id"], "RUNNING")
        bob.open(kept["id"], "terminal")
    bob.stop(kept["id"])
    bob.launch(version=version)
    assert len(set(cluster.queue("bob")) - jobs) == 2


def test_the_cap_is_the_size_of_shared_memory_in_the_container(admin: Api, alice: Api) -> None:
    with capped(admin, "100m"):
        asked = SMALL | {"resources": {"cpus": 1, "memory": "600m", "shared_memory": "101m"}}
        refused = alice("POST", "/sessions", json=asked)
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert error["field"] == "resources.shared_memory"
        assert "100 MB" in error["message"]
        session = alice.running()
        assert session["resources"]["shared_memory"] == "100m"
        window = Terminal(alice.open(session["id"], "terminal"))
        assert str(100 * 1024) in window.run("df -k /dev/shm")
        window.close()


def test_the_journal_records_who_did_what(admin: Api, alice: Api, cluster: Cluster) -> None:
    session = alice.launch(env={"PASSWORD": "sesame-in-no-journal"})
    admin.stop(session["id"])
    alice.wait_state(session["id"], *OVER)
    # An hour has one line for each name, and for a limited number of names; other tests guess, too.
    in_database(cluster, "DELETE FROM refusal")
    body = {"username": "bob", "password": "not-the-password"}
    assert Api(cluster, "")("POST", "/tokens", json=body).status_code == 401
    entries = admin.ask("GET", "/journal", params={"limit": 50})["entries"]
    about = [e for e in entries if e["target"] == session["id"]]
    actions = [(e["who"], e["action"]) for e in about]
    assert actions == [("admin", "session.end"), ("alice", "session.launch")]
    refused = next(e for e in entries if e["action"] == "login.refused")
    assert refused["who"] == "bob"
    assert refused["address"]
    assert {e["address"] for e in about} == {refused["address"]}
    text = admin("GET", "/journal", params={"limit": 500}).text
    assert "sesame-in-no-journal" not in text
    assert "not-the-password" not in text
    assert alice("GET", "/journal").status_code == 404


def limited(admin: Api, kind: str, name: str) -> Json | None:
    """A QOS, account, user or group as shown on the limits page."""
    found = admin.ask("GET", CLUSTER_LIMITS)[kind]
    return next((item for item in found if item["name"] == name), None)


def test_limits_are_shown_as_slurm_has_them(admin: Api, cluster: Cluster) -> None:
    change = ["sacctmgr", "-i", "modify", "qos", "normal", "set"]
    cluster.run("ctl", *change, "MaxJobsPerUser=7")
    try:

        def shown() -> Json | None:
            limits = (limited(admin, "qos", "normal") or {})["limits"]
            return next((limit for limit in limits if limit["value"] == "7"), None)

        limit = wait_for("the limit", shown, LEARNT, 1.0)
    finally:
        cluster.run("ctl", *change, "MaxJobsPerUser=-1")
    assert limit["command"] == "sacctmgr modify qos normal set MaxJobsPerUser=7"


def test_slurm_accepts_every_shown_command(admin: Api, cluster: Cluster, accounting: str) -> None:
    cluster.run("ctl", "sacctmgr", "-i", "add", "qos", accounting)
    user = ["user", "where", "name=alice", f"account={accounting}", "set", "MaxJobs=3"]
    cluster.run("ctl", "sacctmgr", "-i", "modify", *user)
    cluster.run("ctl", "scontrol", "create", f"PartitionName={accounting}", "Nodes=n1")
    try:

        def all_there() -> list[Json] | None:
            found = admin.ask("GET", CLUSTER_LIMITS)
            users = [u for u in found["users"] if u["about"] == f"account {accounting}"]
            rest = [
                item
                for kind in ("qos", "accounts", "resource_groups")
                for item in found[kind]
                if item["name"] == accounting
            ]
            return [*rest, *users] if len(rest) == 3 and users else None

        items = wait_for("all of them", all_there, LEARNT, 1.0)
        for limit in (limit for item in items for limit in item["limits"]):
            words = shlex.split(limit["command"])
            if words[0] == "sacctmgr":
                words.insert(1, "-i")
            cluster.run("ctl", *words)
        shown = ["sacctmgr", "--noheader", "--parsable2", "show", "qos", accounting]
        line = cluster.run("ctl", *shown, "format=MaxTRESPerUser,MaxTRESPerJob,GrpTRES,MaxWall")
        assert line.strip() == "cpu=8,mem=32G|cpu=8,mem=32G|cpu=8,mem=32G|08:00:00"
        group = cluster.run("ctl", "scontrol", "show", "partition", accounting)
        for word in ("AllowAccounts=research", "QoS=normal", "MaxTime=08:00:00"):
            assert word in group
    finally:
        cluster.run("ctl", "scontrol", "delete", f"PartitionName={accounting}")
        cluster.run("ctl", "sacctmgr", "-i", "delete", "qos", accounting)
