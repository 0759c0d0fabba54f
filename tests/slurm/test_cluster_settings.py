"""Slurm as some sites have it: page, launch, refusal and `slipway check` say what is so."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support.client import SMALL, Api, Browser, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.slurm_choices import LEARNT, Choice, portal_refusal, slurm_refusals
from tests.support.slurm_variants import check_results, configured, is_in_order, partitions

PARTITIONS = {
    "down": "Nodes=n1,n2 State=DOWN",
    "drained": "Nodes=n1,n2 State=DRAIN",
    "inactive": "Nodes=n1,n2 State=INACTIVE",
    "hidden": "Nodes=n1,n2 Hidden=YES",
    "root": "Nodes=n1,n2 RootOnly=YES",
    "booked": "Nodes=n1,n2 ReqResv=YES",
    "pairs": "Nodes=n1,n2 MinNodes=2",
    "shared": "Nodes=n1,n2 OverSubscribe=FORCE:2",
    "whole": "Nodes=n1,n2 OverSubscribe=EXCLUSIVE",
    "oneuser": "Nodes=n1,n2 ExclusiveUser=YES",
    "overlap": "Nodes=n2 MaxTime=20",
    "sp ace": "Nodes=n1 MaxTime=20",
    "Größe": "Nodes=n2 MaxTime=20",
}
REFUSED = {
    "drained": "accepts nothing new",
    "inactive": "switched off",
    "root": "only root may use root",
    "booked": "only for jobs in a reservation",
    "pairs": "at least 2 nodes",
}
CHECKED = {
    "partition down: DOWN, so jobs wait": True,
    "partition drained: DRAIN, so nothing is launched": True,
    "partition inactive: INACTIVE": True,
    "partition hidden: hidden": True,
    "partition root: for root only": True,
    "partition booked: only with a reservation": True,
    "partition pairs: 2 nodes at least": True,
    "partition shared: OverSubscribe=FORCE:2": True,
    "partition whole: every job gets whole nodes": True,
    "partition oneuser: nodes serve one user": True,
    "partition 'sp ace' has a space": True,
}
MEMBERS = "members"
SHARE: Json = {"cpus": 1, "memory": "600m", "fgpu": 0.5}


@pytest.fixture(scope="module")
def page(cluster: Cluster) -> Browser:
    """Alice's browser: login attempts are limited."""
    return Browser(cluster, "alice")


def groups(api: Api) -> dict[str, Json]:
    """What the API offers by name."""
    found: list[Json] = api.ask("GET", "/resource-groups")["resource_groups"]
    return {one["name"]: one for one in found}


def offered(page: Browser) -> dict[str, bool]:
    """The resource groups of the wizard, and whether each can be chosen."""
    inputs = re.findall(r'<input[^>]*name="resource_group"[^>]*>', page.get("/sessions/new").text)
    values = [(re.search(r'value="([^"]*)"', one), " disabled" in one) for one in inputs]
    return {html.unescape(value[1]): not disabled for value, disabled in values if value}


def refused(api: Api, **changes: object) -> dict[str, str]:
    """The refused fields of a launch, which must be refused, and the words."""
    answer = api("POST", "/sessions", json=SMALL | changes)
    assert answer.status_code == 422, f"{answer.status_code}: {answer.text}"
    return {error["field"]: error["message"] for error in answer.json()["errors"]}


def test_partitions_of_every_kind(bob: Api, cluster: Cluster, page: Browser) -> None:
    odd = {**PARTITIONS, MEMBERS: "Nodes=n1,n2 AllowGroups=slipway-operator"}
    with partitions(cluster, odd):
        wait_for("them", lambda: "Größe" in groups(bob) and "Größe" in offered(page), LEARNT, 1.0)
        # The portal reads their rules apart from them; `pairs` is the last that refuses.
        last = Choice(partition="pairs")
        wait_for("their rules", lambda: REFUSED["pairs"] in portal_refusal(bob, last), LEARNT, 1.0)
        asked = [Choice(partition=f"{name}") for name in PARTITIONS]
        for one, slurm in zip(asked, slurm_refusals(cluster, "bob", asked), strict=True):
            name = str(one.partition)
            assert bool(slurm) is (name in REFUSED), f"{name}: {slurm}"
            assert REFUSED.get(name, "") in (why := portal_refusal(bob, one)), f"{name}: {why}"
            assert bool(why) is bool(slurm), f"{name}: {why}"
        assert set(refused(bob, resource_group=MEMBERS)) == {"resource_group"}
        shown = offered(page)
        assert not {"root", "hidden", "pairs"} & set(shown)
        assert shown["Größe"] and shown["sp ace"] and shown["overlap"]
        assert not shown.get("drained") and not shown.get("inactive")
        findings = check_results(cluster)
        for words, ok in CHECKED.items():
            assert is_in_order(findings, words) is ok
        assert is_in_order(findings, f"partition {MEMBERS}: only for the groups slipway-operator")
        _sessions_run_there(bob, cluster)


def _sessions_run_there(bob: Api, cluster: Cluster) -> None:
    """In partitions with odd names, and in those that share their nodes' cores or do not."""
    waiting = bob.launch(resource_group="down")
    for name in ("sp ace", "Größe"):
        session = bob.running(resource_group=name)
        assert session["resource_group"] == name
        shown = cluster.run("ctl", "scontrol", "show", "job", session["job_id"])
        assert f"Partition={name} " in shown, shown
        bob.stop(session["id"])

    def why() -> bool:
        return "down" in f"{bob.get(waiting['id'])['reason']}".lower()

    wait_for("the reason to wait", why)
    bob.clean()


LOOSE = {
    "AccountingStorageEnforce": None,
    "EnforcePartLimits": "NO",
    "PrivateData": "accounts,events,jobs,nodes,reservations,usage,users",
    "PrologFlags": "Contain,X11",
    "ReturnToService": "0",
    "JobContainerType": "job_container/tmpfs",
}
CONTAINER = {"job_container.conf": "AutoBasePath=true\nBasePath=/var/spool/slurm-tmp\n"}


@contextmanager
def operator(cluster: Cluster) -> Iterator[None]:
    """The reader may see what is private, which `slipway check` asks for until it may."""
    change, user = ("sacctmgr", "--immediate"), ("user", "slipway")
    blind = check_results(cluster)
    assert is_in_order(blind, "Slurm's partitions (sinfo)") is False
    assert is_in_order(blind, "PrivateData=accounts") is False
    assert any("give slipway AdminLevel=Operator" in text for text in blind)
    more = ("Account=root", "AdminLevel=Operator", "MaxSubmitJobs=0")
    cluster.run("ctl", *change, "add", *user, *more)
    try:
        yield
    finally:
        cluster.run("ctl", *change, "delete", *user)


def test_private_data_nothing_enforced_and_a_tmp_for_each_job(
    alice: Api, cluster: Cluster, page: Browser
) -> None:
    usual = "QOS"
    wait_for("limits", lambda: usual in groups(alice)["main"]["bounded_by"]["memory"], LEARNT, 1.0)
    with configured(cluster, LOOSE, more=CONTAINER), operator(cluster):
        findings = check_results(cluster)
        for words, ok in (
            ("limits are stored but not enforced", False),
            ("PrivateData=accounts,jobs,nodes", True),
            ("ReturnToService=0", True),
            ("jobs have a /tmp of their own (job_container/tmpfs)", True),
            ("PrologFlags=X11", True),
            ("PrologFlags=Contain", True),
        ):
            assert is_in_order(findings, words) is ok
        free = "largest node"
        wait_for(
            "no limits", lambda: free in groups(alice)["main"]["bounded_by"]["memory"], LEARNT, 1.0
        )
        assert offered(page)["main"]
        session = _running(alice)
        alice.open(session["id"], "jupyterlab")
        alice.clean()


def _running(alice: Api) -> Json:
    """A running session; slurmd may fail its first jobs with a job_container that is new to it."""
    for _ in range(2):
        with suppress(AssertionError):
            return alice.running()
    return alice.running()


NO_ACCOUNTING = {
    "AccountingStorageType": None,
    "AccountingStorageHost": None,
    "AccountingStorageEnforce": None,
    "AccountingStorageTRES": None,
    "PriorityType": "priority/basic",
    "PreemptType": "preempt/none",
    "PreemptMode": "OFF",
}
BARE = {
    "TaskPlugin": "task/affinity",
    "ProctrackType": "proctrack/linuxproc",
    "JobAcctGatherType": "jobacct_gather/linux",
}


def test_no_accounting_and_no_shards(alice: Api, cluster: Cluster, page: Browser) -> None:
    with configured(cluster, NO_ACCOUNTING, shards=False):
        findings = check_results(cluster)
        assert is_in_order(findings, "Slurm has no accounting") is False
        assert is_in_order(findings, "GresTypes lacks shard") is True
        wait_for("no shares", lambda: not groups(alice)["short"]["max_running"], LEARNT, 1.0)
        assert offered(page)["main"]
        session = alice.running()
        alice.stop(session["id"])
        over = alice.wait_state(session["id"], "FINISHED", "FAILED")
        assert over["state"] == "FINISHED", over
        # Until the portal has read the nodes again, Slurm could be one that has just started.
        wait_for("our refusal", lambda: _tried(alice) == 422, LEARNT, 1.0)
        assert "resources.fgpu" in refused(alice, resources=SHARE)


def _tried(alice: Api) -> int:
    """The answer to a launch with a share of a GPU, which no answer may accept."""
    status = alice("POST", "/sessions", json=SMALL | {"resources": SHARE}).status_code
    assert status in (422, 503)
    return status


def test_without_cgroups_nothing_is_launched(alice: Api, cluster: Cluster, page: Browser) -> None:
    with configured(cluster, BARE):
        assert (
            is_in_order(check_results(cluster), "no cgroups (TaskPlugin lacks task/cgroup)")
            is False
        )
        wait_for(
            "our refusal", lambda: "no cgroups" in portal_refusal(alice, Choice()), LEARNT, 1.0
        )
        words = refused(alice)["resource_group"]
        assert "Nothing is launched until an administrator" in words
        review = page.post("/sessions/new/review", {"environment": "python", "cpus": "1"}).text
        assert "no cgroups" in review


def test_a_controller_that_starts_refuses_no_share(alice: Api, cluster: Cluster) -> None:
    """For a second after its start slurmctld knows no shards yet: "not now", never a refusal."""
    share = SMALL | {"resources": SHARE}

    def offered() -> bool:
        return alice("POST", "/sessions/estimate", json=share).status_code == 200

    wait_for("the shards, which an earlier test took away", offered, LEARNT, 1.0)
    cluster.daemon("restart", "ctl", "slurmctld")
    found: list[int] = []

    def launched() -> bool:
        answer = alice("POST", "/sessions", json=share)
        found.append(answer.status_code)
        assert answer.status_code in (201, 503), f"{found} {answer.text}"
        if answer.status_code == 201:
            alice.launched += [one["id"] for one in answer.json()["sessions"]]
        return answer.status_code == 201

    wait_for("a launch with a share", launched, 60, 0.1)
    print(found)
    assert is_in_order(check_results(cluster), "cgroups limit memory")
