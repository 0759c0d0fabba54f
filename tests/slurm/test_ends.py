"""Every way in which a session can end, fail or be held up, provoked on a real cluster.

Slurm's queue forgets jobs quickly here, so every text must still be right when only accounting
knows the job. The tests run in this order: the first launches a session that the last needs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.conftest import MakeApi
from tests.support.apps import Terminal
from tests.support.client import OVER, TINY, Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.faulty_images import faulty
from tests.support.slurm_settings import LABELLED, scontrol, short_job_age, short_slurmd_timeout

__all__ = ["faulty"]

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module", autouse=True)
def short_memory(cluster: Cluster) -> Iterator[None]:
    """A queue that forgets jobs as soon as possible."""
    with short_job_age(cluster):
        yield


@pytest.fixture(scope="module")
def bob(make_api: MakeApi) -> Iterator[Api]:
    """Another researcher, for the whole file."""
    api = make_api("bob")
    yield api
    api.clean()


@pytest.fixture(scope="module")
def short(make_api: MakeApi, cluster: Cluster) -> Iterator[Json]:
    """A session with one minute to live, launched before everything else."""
    api = make_api("admin")
    yield api.launch(time_limit=1, **TINY)
    api.clean()


@pytest.fixture(scope="module")
def ended() -> dict[str, Json]:
    """The sessions' ends, to be checked again when Slurm has forgotten them."""
    return {}


def end_of(api: Api, session: str, seconds: float = LABELLED) -> Json:
    """The end of a session that ends about now."""
    end: Json = api.wait_state(session, *OVER, seconds=seconds)["end"]
    return end


def log_of(api: Api, session: str) -> str:
    """The log's last lines, which arrive a moment after the end."""
    found = wait_for("the last lines", lambda: api.get(session)["end"]["log"] or None, LABELLED)
    return str(found)


def test_who_ended_it(
    short: Json, alice: Api, bob: Api, admin: Api, cluster: Cluster, ended: dict[str, Json]
) -> None:
    first, second = alice.launch(**TINY)["id"], alice.launch(**TINY)["id"]
    fourth, third = bob.launch(**TINY)["id"], bob.launch(**TINY)["id"]  # the last one is pending
    for api, session in ((alice, first), (alice, second), (bob, fourth)):
        api.wait_state(session, "RUNNING")
    alice.stop(first)
    admin.stop(third)
    cluster.run("login", "scancel", f"--name={second}", user="alice")
    cluster.run("ctl", "scancel", f"--name={fourth}")
    texts = {
        first: "Ended by alice.",
        second: "Cancelled by alice with Slurm's own commands.",
        third: "Ended by admin (an administrator).",
        fourth: "Cancelled by root (an administrator) with Slurm's own commands.",
    }
    for session, text in texts.items():
        ended[session] = end_of(bob if session in (third, fourth) else alice, session)
        assert (ended[session]["cause"], ended[session]["text"]) == ("cancelled", text)


def test_sessions_and_apps_that_do_not_start(
    alice: Api, bob: Api, cluster: Cluster, faulty: str, ended: dict[str, Json]
) -> None:
    garbage = alice.launch(environment=faulty, version="1.0", **TINY)["id"]
    unreadable = alice.launch(environment=faulty, version="2.0", **TINY)["id"]
    apps = bob.running(environment=faulty, version="3.0", **TINY)["id"]
    for app in ("mute", "breaks"):
        bob.ask("POST", f"/sessions/{apps}/apps/{app}")
    for session in (garbage, unreadable):
        assert end_of(alice, session, 30)["cause"] == "start_failed"
        log_of(alice, session)
        ended[session] = alice.get(session)["end"]
    assert "Apptainer could not open its environment (" in ended[garbage]["text"]
    assert "FATAL" in ended[garbage]["log"]
    assert "its image cannot be read on n" in ended[unreadable]["text"]
    assert ended[unreadable]["exit_code"] == 70

    def failed(app: str) -> Json | None:
        now = {one["name"]: one for one in bob.get(apps)["apps"]}[app]
        return now if now["message"] else None

    broken = wait_for("the app that ends", lambda: failed("breaks"), 15)
    assert broken["message"] == "Breaks did not start: it ended with exit code 3."
    assert broken["log"] == "going down"
    mute = wait_for("the app that never answers", lambda: failed("mute"), 15)
    assert mute["message"] == "Mute did not start: it did not answer within 3 seconds."
    assert mute["log"] == "saying nothing"
    assert bob.get(apps)["state"] == "RUNNING"
    bob.stop(apps)


def test_out_of_memory(bob: Api, cluster: Cluster, ended: dict[str, Json]) -> None:
    """Pages of /dev/shm outlive the killed processes, so that none of the job's can continue."""
    size = {"cpus": 1, "memory": "600m", "shared_memory": "600m"}
    session = bob.running(resources=size)["id"]
    terminal = Terminal(bob.open(session, "terminal"))
    fill = "for i in 1 2 3 4 5 6 7 8; do setsid nohup head -c 300M /dev/zero >/dev/shm/$i & done"
    terminal.type(fill + Terminal.ENTER)
    end = end_of(bob, session, 40)
    assert end["cause"] == "out_of_memory"
    assert "more memory than the 600 MB" in end["text"]
    assert "Ready on" in log_of(bob, session)
    ended[session] = bob.get(session)["end"]


def test_held_paused_and_requeued(alice: Api, bob: Api, cluster: Cluster) -> None:
    wide: Json = {"resources": {"cpus": 2, "memory": "300m"}}
    running = alice.running(env={"KEPT": "treasure"}, **wide)
    held = alice.launch(**wide)  # more than she may hold at once, so that it is pending
    job, waiting = running["job_id"], held["job_id"]
    scontrol(cluster, "hold", waiting, user="alice")
    reason(alice, held["id"], "JobHeldUser")
    released = alice.ask("POST", f"/sessions/{held['id']}/release")
    assert released["state"] == "PENDING"
    wait_for("no hold", lambda: "JobHeld" not in alice.get(held["id"])["reason"]["code"], LABELLED)
    scontrol(cluster, "hold", waiting)
    reason(alice, held["id"], "JobHeldAdmin")
    assert alice("POST", f"/sessions/{held['id']}/release").status_code == 409
    alice.stop(held["id"])

    scontrol(cluster, "suspend", job)
    assert reason(alice, running["id"], "Suspended")["state"] == "RUNNING"
    scontrol(cluster, "resume", job)
    wait_for("it goes on", lambda: alice.get(running["id"])["reason"] is None, LABELLED)

    terminal = Terminal(alice.open(running["id"], "terminal"))
    terminal.run("touch ~/left-behind")
    terminal.close()
    scontrol(cluster, "update", f"JobId={job}", "Requeue=1")
    scontrol(cluster, "requeue", job)
    again = wait_for("the queue again", lambda: requeued(alice, running["id"]), 20)
    assert (again["state"], again["node"], again["started"]) == ("PENDING", None, None)
    assert "Slurm put it back into the queue at" in again["reason"]["text"]
    spec = f"/home/alice/.slipway/sessions/{running['id']}/spec.json"
    wait_for("new instructions", lambda: spec in cluster.shell("login", f"ls {spec}; true"), 20)
    # Slurm itself would wait two minutes.
    scontrol(cluster, "update", f"JobId={job}", "StartTime=now")
    back = alice.wait_state(running["id"], "RUNNING", seconds=60)
    assert (back["job_id"], back["restarts"]) == (job, 1)
    terminal = Terminal(alice.open(running["id"], "terminal"))
    assert "treasure" in terminal.run("echo $KEPT")
    assert "left-behind" not in terminal.run("ls ~")
    terminal.close()


def requeued(api: Api, session: str) -> Json | None:
    """The session, once the portal knows that Slurm restarts it."""
    now = api.get(session)
    return now if now["restarts"] and now["state"] == "PENDING" else None


def reason(api: Api, session: str, code: str) -> Json:
    """The session, once its reason has this code."""

    def there() -> Json | None:
        now = api.get(session)
        return now if (now["reason"] or {}).get("code") == code else None

    return wait_for(code, there, LABELLED)


def test_more_time(bob: Api, make_api: MakeApi, cluster: Cluster) -> None:
    session = bob.running(time_limit=90, **TINY)
    path = f"/sessions/{session['id']}/extend"
    assert make_api("alice")("POST", path).status_code == 404
    more = bob.ask("POST", path)
    assert more["time_limit"] == 150
    shown = cluster.run("login", "squeue", "--noheader", "--format=%l", f"--jobs={more['job_id']}")
    assert shown.strip() == "2:30:00"
    refused = bob("POST", path, json={"minutes": 400})
    assert refused.status_code == 422
    (problem,) = refused.json()["errors"]
    assert problem["field"] == "minutes"
    assert "8 h at most; it can get 5 h 30 min more" in problem["message"]
    assert bob.ask("POST", path, json={"minutes": 330})["time_limit"] == 480
    assert bob("POST", path).status_code == 422
    bob.stop(session["id"])


def test_accounting_lags_behind(bob: Api, cluster: Cluster, ended: dict[str, Json]) -> None:
    session = bob.running(**TINY)["id"]
    cluster.daemon("stop", "ctl", "slurmdbd")
    try:
        cluster.run("ctl", "scancel", f"--name={session}")
        end = end_of(bob, session, 90)  # each sacct waits for slurmdbd before it gives up
        assert (end["cause"], end["text"]) == ("cancelled", "Cancelled with Slurm's own commands.")
    finally:
        cluster.daemon("start", "ctl", "slurmdbd")
    text = "Cancelled by root (an administrator) with Slurm's own commands."
    wait_for("the name", lambda: bob.get(session)["end"]["text"] == text, 60)
    ended[session] = bob.get(session)["end"]


def test_time_limit(admin: Api, short: Json, ended: dict[str, Json]) -> None:
    end = end_of(admin, short["id"], 120)
    assert end["cause"] == "time_limit"
    assert end["text"].startswith("The time limit was reached.")
    ended[short["id"]] = end


def test_node_fails(alice: Api, cluster: Cluster, ended: dict[str, Json]) -> None:
    session = alice.running(**TINY)
    node = session["node"]
    with short_slurmd_timeout(cluster):
        cluster.daemon("stop", node, "slurmd")
        try:
            cluster.shell(node, "pkill -9 slurmstepd; pkill -9 -u alice", check=False)
            end = end_of(alice, session["id"], 60)
        finally:
            cluster.daemon("start", node, "slurmd")
    assert end["cause"] == "node_failure"
    assert end["text"] == f"The compute node {node} failed. Launch the session again."
    log_of(alice, session["id"])
    ended[session["id"]] = alice.get(session["id"])["end"]
    up = ["sinfo", "--noheader", f"--nodes={node}", "--format=%t"]
    wait_for("the node", lambda: "idle" in cluster.run("login", *up), 60)


def test_ends_remain_after_slurm_has_forgotten_the_jobs(
    admin: Api, ended: dict[str, Json], cluster: Cluster
) -> None:
    assert len(ended) == 10
    known = cluster.queue()
    assert [session for session in ended if session not in known], "Slurm has forgotten nothing"
    assert {session: admin.get(session)["end"] for session in ended} == ended
