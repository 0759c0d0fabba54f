"""Folders that outlive sessions: created, mounted, written to, kept; and start estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.apps import Kernel, Terminal
from tests.support.client import OVER, Api, Json
from tests.support.cluster import Cluster, wait_for

STORAGE = "/home/alice/storage"
NAMES = ("trial", "maps", "linked")


@pytest.fixture(autouse=True)
def _tidy(cluster: Cluster) -> Iterator[None]:
    """Each test creates its own folders."""
    places = " ".join(f"{STORAGE}/{name}" for name in NAMES)
    cluster.shell("login", f"rm -rf {places} /home/alice/far", user="alice")
    yield
    cluster.shell("login", f"rm -rf {places} /home/alice/far", user="alice")


def make(api: Api, name: str = "trial") -> Json:
    """Create a storage folder."""
    return api.ask("POST", "/folders", 201, json={"name": name})


def kept(cluster: Cluster, name: str, folder: str = "trial") -> str:
    """The content of a file in a storage folder, read on the login node."""
    return cluster.shell("login", f"cat {STORAGE}/{folder}/{name}", user="alice").strip()


def terminal(api: Api, session: Json) -> Terminal:
    """The session's terminal."""
    return Terminal(api.open(session["id"], "terminal"))


def test_a_folder_outlives_the_session_and_is_mounted_again(alice: Api, cluster: Cluster) -> None:
    made = make(alice)
    assert (made["name"], made["path"], made["mountable"]) == ("trial", f"{STORAGE}/trial", True)
    session = alice.running(mounts=["trial"])
    assert session["mounts"] == [{"folder": "trial", "read_only": False, "path": "~/trial"}]
    kernel = Kernel(alice.open(session["id"], "jupyterlab"))
    # It starts in the folder, like the terminal.
    kernel.run("open('from-kernel', 'w').write('hello')")
    window = terminal(alice, session)
    assert "from-kernel" in window.run("ls ~/trial")
    window.run("echo hi > ~/trial/from-terminal; echo lost > ~/scratch")
    window.close()
    alice.stop(session["id"])
    alice.wait_state(session["id"], *OVER)
    left = f"ls -d {_folder(session)}"
    wait_for("no folder", lambda: not cluster.shell("login", left, check=False), 15)
    assert (kept(cluster, "from-kernel"), kept(cluster, "from-terminal")) == ("hello", "hi")

    second = alice.running(mounts=["trial"])
    again = terminal(alice, second)
    listed = again.run("ls ~ ~/trial")
    assert "from-kernel" in listed
    assert "from-terminal" in listed
    assert "scratch" not in listed
    again.close()


def test_read_only_and_home_and_links(alice: Api, cluster: Cluster) -> None:
    make(alice)
    script = f"mkdir /home/alice/far && ln -s /home/alice/far {STORAGE}/linked; echo 1 > ~/treasure"
    cluster.shell("login", f"cd; HOME=/home/alice; {script}", user="alice")
    mounts = [{"folder": "trial", "read_only": True}, {"folder": "home"}, "linked"]
    session = alice.running(mounts=mounts)
    window = terminal(alice, session)
    assert "Read-only file system" in window.run("touch ~/trial/new")
    assert "treasure" in window.run("ls ~/home")
    window.run("echo 2 > ~/home/treasure; echo 3 > ~/linked/here")
    # The session's own folder through the mounted home: its mounts do not show there.
    inner = f"~/home/.slipway/sessions/{session['id']}/home"
    found = window.run(f"echo found $(find {inner}/home {inner}/linked -mindepth 1 | wc -l)")
    assert "found 0" in found
    window.close()
    alice.stop(session["id"])
    alice.wait_state(session["id"], *OVER)
    assert cluster.shell("login", "cat /home/alice/treasure /home/alice/far/here").split() == [
        "2",
        "3",
    ]


def test_files_deleted_in_jupyter_are_really_deleted(alice: Api, cluster: Cluster) -> None:
    make(alice)
    session = alice.running(mounts=["trial"])
    lab = alice.open(session["id"], "jupyterlab")
    kernel = Kernel(lab)
    kernel.run("for name in 'ab': open(name, 'w').write(name)")
    assert lab.send("DELETE", "/api/contents/trial/a").status_code == 204
    # The mounted folder itself cannot be deleted by mistake.
    assert lab.send("DELETE", "/api/contents/trial").status_code == 400
    trash = "import os; print(os.path.exists(os.path.expanduser('~/.local/share/Trash')))"
    assert kernel.run(trash).text == "False\n"
    assert cluster.shell("login", f"ls {STORAGE}/trial", user="alice").split() == ["b"]


@pytest.fixture
def below(cluster: Cluster) -> Iterator[None]:
    """Another file system mounted below a storage folder, as on large sites."""
    place = f"{STORAGE}/trial/below"
    cluster.shell("login", f"mkdir -p {place}", user="alice")
    for node in ("n1", "n2"):
        cluster.run(node, "mount", "-t", "tmpfs", "-o", "mode=777", "none", place)
    yield
    for node in ("n1", "n2"):
        cluster.run(node, "umount", place)


@pytest.mark.usefixtures("below")
def test_read_only_applies_to_mounts_below(alice: Api) -> None:
    session = alice.running(mounts=[{"folder": "trial", "read_only": True}])
    window = terminal(alice, session)
    assert "Read-only file system" in window.run("touch ~/trial/new")
    assert "Read-only file system" in window.run("touch ~/trial/below/new")
    window.close()
    alice.clean()


Ending = Callable[[Api, Cluster, Json], object]


def _end(api: Api, _cluster: Cluster, session: Json) -> None:
    api.stop(session["id"])


def _cancel(_api: Api, cluster: Cluster, session: Json) -> None:
    cluster.run("login", "scancel", session["job_id"], user="alice")


def _kill(cluster: Cluster, session: Json, spared: str) -> None:
    # Slurm's own step daemon is in the job's cgroups on some systems; it must survive.
    script = (
        f"for group in $(grep -ls '/job_{session['job_id']}/' /proc/[0-9]*/cgroup); do "
        "pid=${group#/proc/}; pid=${pid%/cgroup}; name=$(cat /proc/$pid/comm); "
        f'case $name in {spared}|slurmstepd*) ;; *) echo "$name"; kill -9 $pid;; esac; done'
    )
    assert cluster.shell(session["node"], script, check=False).strip()


def _kill_container(_api: Api, cluster: Cluster, session: Json) -> None:
    _kill(cluster, session, "slurm_script")


def _kill_all(_api: Api, cluster: Cluster, session: Json) -> None:
    """As in a node's restart: the batch script cannot clean up, so the portal does."""
    _kill(cluster, session, "nobody")


def _delete_while_it_runs(api: Api, cluster: Cluster, session: Json) -> None:
    """The portal's clean-up after a node failure, while the container may still run."""
    cluster.run("login", "rm", "-rf", "--", _folder(session), user="alice")
    assert kept(cluster, "deep/file") == "1"
    api.stop(session["id"])


def _folder(session: Json) -> str:
    return f"/home/alice/.slipway/sessions/{session['id']}"


@pytest.mark.parametrize(
    "endings", [(_end, _cancel), (_kill_container, _kill_all, _delete_while_it_runs)]
)
def test_no_end_of_a_session_touches_mounted_folders(
    alice: Api, cluster: Cluster, endings: tuple[Ending, ...]
) -> None:
    make(alice)
    script = f"mkdir {STORAGE}/trial/deep; echo 1 > {STORAGE}/trial/deep/file"
    cluster.shell("login", script, user="alice")
    launched = [alice.launch(mounts=["trial", "home"]) for _ in endings]
    for end, session in zip(endings, launched, strict=True):
        end(alice, cluster, alice.wait_state(session["id"], "RUNNING"))
    for session in launched:
        alice.wait_state(session["id"], *OVER, seconds=60)
    folders = " ".join(map(_folder, launched))
    wait_for("no folder", lambda: not cluster.shell("login", f"ls -d {folders}", check=False), 60)
    assert kept(cluster, "deep/file") == "1"


def test_other_users_folders_cannot_be_named(alice: Api, bob: Api) -> None:
    make(alice)
    assert [folder["name"] for folder in bob.ask("GET", "/folders")["folders"]] == ["home"]
    answer = bob("POST", "/sessions", json=_body(mounts=["trial"]))
    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {"field": "mounts.0", "message": "you have no folder named trial"}
    ]
    for name in ("../alice/storage/trial", "/home/alice/storage/trial", "~alice"):
        answer = bob("POST", "/sessions", json=_body(mounts=[name]))
        assert [error["field"] for error in answer.json()["errors"]] == ["mounts.0"]


def _body(**more: object) -> Json:
    resources = {"cpus": 1, "memory": "600m"}
    return {"environment": "python", "resources": resources, **more}


@pytest.fixture
def occupy(cluster: Cluster) -> Iterator[Callable[[str, int], str]]:
    """Occupy cores for some minutes, with Slurm's own commands."""
    jobs: list[tuple[str, str]] = []

    def take(user: str, cpus: int) -> str:
        script = (
            f"#!/bin/sh\n#SBATCH --mem=300 --output=/dev/null --cpus-per-task={cpus} --time=10\n"
            "sleep 600\n"
        )
        job = cluster.run("login", "sbatch", "--parsable", user=user, stdin=script).strip()
        jobs.append((user, job))
        return job

    yield take
    for user, job in jobs:
        cluster.run("login", "scancel", job, user=user)
    wait_for("an empty queue", lambda: not _held(cluster), 30)


def _held(cluster: Cluster) -> str:
    return cluster.run("login", "squeue", "--noheader", "--states=PD,R,CG").strip()


def test_a_folder_missing_at_the_start_is_named(
    alice: Api, cluster: Cluster, occupy: Callable[[str, int], str]
) -> None:
    make(alice, "maps")
    first, _ = occupy("alice", 2), occupy("alice", 1)
    session = alice.launch(mounts=["maps"])
    wait_for("the queue", lambda: cluster.queue("alice")[session["id"]].state == "PENDING", 10)
    cluster.shell("login", f"rmdir {STORAGE}/maps", user="alice")
    cluster.run("login", "scancel", first, user="alice")
    ended = alice.wait_state(session["id"], "FAILED", seconds=30)
    assert ended["end"]["cause"] == "start_failed"
    assert ended["end"]["exit_code"] == 70
    log = alice.ask("GET", f"/sessions/{session['id']}/log")["log"]
    assert log.splitlines()[-1] == (
        'Slipway: the folder "maps" no longer exists. Launch without it, or create it again.'
    )
    assert not cluster.shell("login", f"ls -d {_folder(session)}", check=False)


def guess(api: Api) -> Json:
    """An estimate; retried, since the user may have requested another one just before."""
    found: list[Json] = []

    def has_estimate() -> bool:
        found.append(api.ask("POST", "/sessions/estimate", json=_body()))
        return "a moment ago" not in found[-1]["reason"]

    wait_for("an estimate", has_estimate, 10, pause=1)
    return found[-1]


def test_the_estimate_distinguishes_now_from_later(
    bob: Api, alice: Api, cluster: Cluster, occupy: Callable[[str, int], str]
) -> None:
    wait_for("an empty queue", lambda: not _held(cluster), 30)
    everything = {"cpus": 3, "memory": "3g", "fgpu": 2}
    wait_for("free cores", lambda: guess(bob)["free"] == everything, 20, pause=3)
    start = datetime.fromisoformat(guess(bob)["estimated_start"])
    assert abs(start - datetime.now(UTC)) < timedelta(seconds=30)
    for user, cpus in (("alice", 2), ("alice", 1), ("bob", 1)):
        occupy(user, cpus)

    def full() -> Json | None:
        now = guess(bob)
        start = datetime.fromisoformat(now["estimated_start"])
        later = start - datetime.now(UTC) > timedelta(minutes=5)
        return now if now["free"]["cpus"] == 0 and later else None

    wait_for("a start when a job ends", full, 30, pause=3)
    limited = guess(alice)
    assert limited["estimated_start"] is None
    assert "QOS normal, MaxTRESPerUser" in limited["reason"]
    assert alice.ask("GET", "/templates")["templates"] is not None
