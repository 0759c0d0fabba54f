"""JupyterHub's servers as Slurm jobs: starts, ends, outages and refusals, over its REST API."""

from __future__ import annotations

import html
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.slurm.conftest import MakeApi, MakeHub
from tests.support.apps import Kernel
from tests.support.cgroups import MB, SEEN_IN_CGROUP
from tests.support.client import OVER, Api, Json
from tests.support.cluster import Cluster, healthy, wait_for
from tests.support.hubs import (
    SEEN,
    HubApi,
    HubLogin,
    live_jobs,
    path_of,
    session_at,
    sessions_at,
    sized,
)
from tests.support.invalid_server_options import bad_options
from tests.support.slurm_settings import (
    LABELLED,
    QUERY_TOLERANCE,
    query_count,
    short_slurmd_timeout,
)

SMALL = sized(1, "400m")

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def hub(make_hub: MakeHub) -> Iterator[HubApi]:
    """Alice at JupyterHub; her servers end with the file."""
    made = make_hub("alice")
    made.clean()
    yield made
    made.clean()


@pytest.fixture(scope="module")
def others_hub(make_hub: MakeHub) -> Iterator[HubApi]:
    """Bob at JupyterHub."""
    made = make_hub("bob")
    made.clean()
    yield made
    made.clean()


@pytest.fixture(scope="module")
def running(hub: HubApi) -> Json:
    """A server of alice's that the tests of this file share."""
    return hub.running()


@pytest.fixture(scope="module")
def kernel(hub: HubApi, running: Json) -> Iterator[Kernel]:
    """A notebook in it."""
    made = Kernel(hub.visit())
    made.run("kept = 'treasure'")
    yield made
    made.close()


@pytest.fixture(scope="module", autouse=True)
def short(others_hub: HubApi) -> str:
    """A server of bob's with one minute to live, started before everything else."""
    others_hub.running("short", SMALL | {"time_limit": 1})
    return "short"


@pytest.fixture(autouse=True)
def second_attempt(request: pytest.FixtureRequest, others_hub: HubApi, short: str) -> None:
    """A second attempt begins without the servers that the first has left."""
    if getattr(request.node, "execution_count", 1) > 1:
        others_hub.clean(short)


def test_a_server_is_a_session_with_what_was_asked_for(
    running: Json, hub: HubApi, researcher: Api, cluster: Cluster
) -> None:
    session = session_at(researcher, path_of("alice"))
    assert (session["owner"], session["state"]) == ("alice", "RUNNING")
    assert (session["environment"], session["version"]) == ("python", "3.13")
    assert (session["resources"]["cpus"], session["resources"]["memory"]) == (1, "500m")
    assert live_jobs(cluster, "alice") == [session["id"]]
    words = ["squeue", "-h", f"--jobs={session['job_id']}", "--format=%C %m %T"]
    assert cluster.run("login", *words).split() == ["1", "500M", "RUNNING"]
    status = hub.visit().get("/api/status")
    assert status.status_code == 200, status.text
    assert running["user_options"]["resources"] == {"cpus": 1, "memory": "500m"}


def test_the_kernel_has_the_jobs_limits(kernel: Kernel) -> None:
    assert kernel.value(SEEN_IN_CGROUP) == [500 * MB, 1, 1, 1]
    words = kernel.run("import os; print(os.environ['JUPYTERHUB_SERVICE_PREFIX'])").text
    assert words == "/user/alice/\n"


def test_a_named_server_beside_it_is_ended_alone(
    running: Json, hub: HubApi, researcher: Api
) -> None:
    hub.running("second", SMALL)
    session = session_at(researcher, path_of("alice", "second"))
    assert hub.visit("second").get("/api/status").status_code == 200
    first = session_at(researcher, path_of("alice"))
    assert first["id"] != session["id"]
    hub.stop("second")
    hub.wait_gone("second")
    end = researcher.wait_state(session["id"], *OVER)["end"]
    assert (end["cause"], end["text"]) == ("cancelled", "Ended by alice.")
    assert hub.visit().get("/api/status").status_code == 200


FILL = """
import subprocess
subprocess.Popen("for i in 1 2 3 4 5 6 7 8; do setsid nohup head -c 300M /dev/zero >/dev/shm/$i & "
                 "done", shell=True)
"""


def told_at(cluster: Cluster, user: str, server: str) -> str | None:
    """What JupyterHub's page of a server that is not running says about its end."""
    page = HubLogin(cluster, user).get(f"/hub{path_of(user, server)}")
    assert page.status_code == 424, page.text
    found = re.search(r'<p id="slipway-ended">(.*?)</p>', page.text)
    return html.unescape(found[1]) if found else None


def test_jupyterhub_sees_every_end(
    others_hub: HubApi, make_api: MakeApi, cluster: Cluster, short: str
) -> None:
    """Ended in the portal, with scancel, by too much memory, and by the time limit."""
    bob = make_api("bob")
    names = ("portal", "memory")
    sizes = {"portal": SMALL, "memory": sized(1, "600m")}
    sizes["memory"]["resources"]["shared_memory"] = "600m"
    for name in names:
        assert others_hub.start(name, sizes[name]).status_code in (201, 202)
    ids = {}
    for name in names:
        others_hub.wait_ready(name)
        ids[name] = session_at(bob, path_of("bob", name))["id"]
    ids["short"] = sessions_at(bob, path_of("bob", "short"))[0]["id"]
    bob.stop(ids["portal"])
    others_hub.wait_gone("portal")
    others_hub.running("scancel", SMALL)
    ids["scancel"] = session_at(bob, path_of("bob", "scancel"))["id"]
    cluster.run("login", "scancel", f"--name={ids['scancel']}", user="bob")
    others_hub.wait_gone("scancel", SEEN + LABELLED)
    Kernel(others_hub.visit("memory")).run(FILL)
    assert bob.wait_state(ids["memory"], *OVER)["end"]["cause"] == "out_of_memory"
    others_hub.wait_gone("memory")
    assert bob.wait_state(ids["short"], *OVER, seconds=120)["end"]["cause"] == "time_limit"
    others_hub.wait_gone("short")
    causes = {name: bob.get(session)["end"]["cause"] for name, session in ids.items()}
    assert causes == {
        "portal": "cancelled",
        "scancel": "cancelled",
        "memory": "out_of_memory",
        "short": "time_limit",
    }
    for name, session in ids.items():
        shown = told_at(cluster, "bob", name)
        assert shown == (None if name == "portal" else bob.get(session)["end"]["text"])


# Starts that are cancelled


def test_cancelled_while_pending(others_hub: HubApi, make_api: MakeApi, cluster: Cluster) -> None:
    bob = make_api("bob")
    cluster.run("ctl", "scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        assert others_hub.start("waits", SMALL).status_code == 202
        session = wait_for("its session", lambda: sessions_at(bob, path_of("bob", "waits")))[0]
        waits = wait_for("a reason", lambda: (now := bob.get(session["id"]))["reason"] and now)
        assert others_hub.servers()["waits"]["pending"] == "spawn"
        assert waits["reason"]["text"] in others_hub.progress("waits")
        assert others_hub.stop("waits").status_code in (202, 204)
        others_hub.wait_gone("waits")
        ended = bob.wait_state(session["id"], *OVER)
        assert ended["end"]["text"] == "Ended by bob."
        assert session["id"] not in live_jobs(cluster, "bob")
    finally:
        cluster.run("ctl", "scontrol", "update", "PartitionName=main", "State=UP")


@contextmanager
def slow_sbatch(cluster: Cluster, seconds: float) -> Iterator[None]:
    """Let sbatch take its time on the login node; the program stays beside it for good."""
    place = cluster.shell("login", "command -v sbatch").strip()
    keep = f"[ -e {place}.real ] || ln {place} {place}.real"
    script = f'#!/bin/sh\nsleep {seconds:g}\nexec {place}.real "$@"\n'
    cluster.shell("login", f"{keep}; cat > {place}.new <<'E'\n{script}E\n")
    cluster.shell("login", f"chmod 755 {place}.new && mv {place}.new {place}")
    try:
        yield
    finally:
        cluster.shell("login", f"ln {place}.real {place}.new && mv {place}.new {place}")


@pytest.mark.parametrize("delay", [0.5, 2.5])
def test_cancelled_in_the_middle_of_sbatch(
    delay: float, others_hub: HubApi, make_api: MakeApi, cluster: Cluster
) -> None:
    bob = make_api("bob")
    path = path_of("bob", "early")
    earlier = {session["id"] for session in sessions_at(bob, path)}
    with slow_sbatch(cluster, 4):
        asking = threading.Thread(target=others_hub.start, args=("early", SMALL))
        asking.start()
        time.sleep(delay)
        assert others_hub.stop("early").status_code in (202, 204)
        others_hub.wait_gone("early", 20)
        asking.join()
    made = [one for one in sessions_at(bob, path) if one["id"] not in earlier]
    assert {bob.wait_state(one["id"], *OVER)["end"]["cause"] for one in made} <= {"cancelled"}
    jobs = {one["id"] for one in made}
    wait_for("no job of it", lambda: jobs.isdisjoint(live_jobs(cluster, "bob")))


# Outages

AWAY = 45.0
"""Seconds without slurmctld: JupyterHub asks about each server several times meanwhile."""


def test_an_outage_of_slurm_ends_no_server(
    running: Json, hub: HubApi, kernel: Kernel, cluster: Cluster, researcher: Api
) -> None:
    before = session_at(researcher, path_of("alice"))
    cluster.daemon("stop", "ctl", "slurmctld")
    try:
        until = time.monotonic() + AWAY
        while time.monotonic() < until:
            assert kernel.run("print(kept)").text == "treasure\n"
            assert hub.servers()[""]["ready"]
            time.sleep(2)
        assert researcher.get(before["id"])["state"] == "UNKNOWN"
        refused = hub.start("refused", SMALL)
        assert refused.status_code == 503
        assert "nothing can be launched right now" in refused.json()["message"]
    finally:
        cluster.daemon("start", "ctl", "slurmctld")
    after = researcher.wait_state(before["id"], "RUNNING")
    assert after["job_id"] == before["job_id"]
    assert hub.servers()[""]["started"] == running["started"]
    assert sessions_at(researcher, path_of("alice", "refused"), state="running") == []


def test_a_notebook_goes_on_while_the_portal_restarts(
    running: Json, hub: HubApi, kernel: Kernel, cluster: Cluster
) -> None:
    cluster.daemon("stop", "portal", "web", "worker")
    try:
        until = time.monotonic() + 20
        while time.monotonic() < until:
            assert kernel.run("print(kept)").text == "treasure\n"
            assert hub.visit().get("/api/status").status_code == 200
            assert hub.servers()[""]["ready"]
            time.sleep(1)
        assert hub.start("refused", SMALL).status_code == 503
    finally:
        cluster.daemon("start", "portal", "worker", "web")
    wait_for("the portal back", lambda: healthy(cluster), 60)
    assert kernel.run("print(kept)").text == "treasure\n"
    assert hub.servers()[""]["started"] == running["started"]


# Load

WINDOW = 20.0
"""A multiple of the worker's polling intervals, so that each window contains the same queries."""


def _rpcs(cluster: Cluster) -> int:
    before = query_count(cluster)
    time.sleep(WINDOW)
    return query_count(cluster) - before


def test_more_servers_cost_slurm_no_more_rpcs(running: Json, hub: HubApi, cluster: Cluster) -> None:
    with_one = _rpcs(cluster)
    for name in ("one", "two"):
        assert hub.start(name, SMALL).status_code in (201, 202)
    for name in ("one", "two"):
        hub.wait_ready(name)
    with_three = _rpcs(cluster)
    for name in ("one", "two"):
        hub.stop(name)
    print(f"RPCs in {WINDOW:g} s: {with_one} with one server, {with_three} with three")
    assert abs(with_three - with_one) <= QUERY_TOLERANCE


# Refusals

OPTIONS = int(os.environ.get("HUB_OPTIONS", "200"))
AT_ONCE = 4


def test_bad_options_are_refused_with_their_field(
    hub: HubApi, cluster: Cluster, researcher: Api
) -> None:
    since = cluster.clock()
    before = {job.id for job in cluster.accounted(since)}  # those that run, too

    def wrong(part: int) -> list[str]:
        """What was answered wrongly to every fourth request: one after the other at one path."""
        found = []
        for number in range(part, OPTIONS, AT_ONCE):
            body = json.dumps(bad[number].options)
            answer = hub("POST", f"/users/alice/servers/bad{part}", data=body)
            # What is no text in UTF-8 is refused as a whole.
            named = bad[number].field in answer.text or "UTF-8" in answer.text
            if not (400 <= answer.status_code < 500 and named):
                told = f"{answer.status_code} {answer.text[:200]}"
                found.append(f"{number}: {bad[number].field}: {body[:300]}: {told}")
        return found

    bad = bad_options("hub", OPTIONS)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = [one for part in pool.map(wrong, range(AT_ONCE)) for one in part]
    assert not found, f"{len(found)} of {OPTIONS}:\n" + "\n".join(found)
    assert [one for one in researcher.list() if "/bad" in one["hub_prefix"]] == []
    made = [job for job in cluster.accounted(since) if job.id not in before]
    assert [job for job in made if job.user == "alice"] == []
    assert [name for name in hub.servers() if name.startswith("bad")] == []


# A node that fails: last, since it takes all servers on it


def test_a_failed_node_is_seen(others_hub: HubApi, make_api: MakeApi, cluster: Cluster) -> None:
    bob = make_api("bob")
    others_hub.running("node", SMALL)
    session = session_at(bob, path_of("bob", "node"))
    node = session["node"]
    with short_slurmd_timeout(cluster):
        cluster.daemon("stop", node, "slurmd")
        try:
            cluster.shell(node, "pkill -9 slurmstepd; pkill -9 -u bob", check=False)
            end = bob.wait_state(session["id"], *OVER, seconds=60)["end"]
            others_hub.wait_gone("node")
        finally:
            cluster.daemon("start", node, "slurmd")
    assert end["cause"] == "node_failure"
    assert told_at(cluster, "bob", "node") == end["text"]
    up = ["sinfo", "--noheader", f"--nodes={node}", "--format=%t"]
    wait_for("the node", lambda: cluster.run("login", *up).strip() in ("idle", "mix"), 60)
