"""Options of a launch: environment variables, a number of sessions, shared memory."""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from tests.support.apps import Kernel, Terminal
from tests.support.client import SMALL, Api, Json
from tests.support.cluster import Cluster, healthy, wait_for
from tests.support.open_apps import Killer

TINY: Json = {"cpus": 1, "memory": "300m"}
SECRET = f"sesame-{uuid.uuid4().hex}"
SHM = """
import json, os
found = os.statvfs("/dev/shm")
with open("/dev/shm/fill", "wb", buffering=0) as file:
    try:
        while True:
            file.write(b"x" * 2**20)
    except OSError as error:
        full = error.errno
root = "/sys/fs/cgroup"
v2 = f"{root}/memory.current"
used = int(open(v2 if os.path.exists(v2) else f"{root}/memory/memory.usage_in_bytes").read())
size = os.path.getsize("/dev/shm/fill")
os.unlink("/dev/shm/fill")
print(json.dumps([found.f_blocks * found.f_frsize >> 20, size >> 20, full, used >> 20]))
"""


@contextmanager
def at_most(cluster: Cluster, user: str, jobs: int) -> Iterator[None]:
    """Limit the number of a user's jobs in the queue."""

    def limit(number: int) -> None:
        words = ["modify", "user", user, "set", f"MaxSubmitJobs={number}"]
        cluster.run("ctl", "sacctmgr", "--immediate", *words)
        wait_for("the limit in slurmctld", lambda: f"MaxSubmitJobs={shown(number)}" in known())

    def shown(number: int) -> str:
        return "" if number < 0 else str(number)

    def known() -> str:
        words = [f"Users={user}", "Flags=Assoc"]
        return cluster.run("ctl", "scontrol", "show", "assoc_mgr", *words).replace("N(", "(")

    limit(jobs)
    try:
        yield
    finally:
        limit(-1)


def test_variables_are_visible_to_apps_only(alice: Api, cluster: Cluster) -> None:
    awkward = 'two\nlines, "quotes", $HOME and ünïcode'
    env = {"PASSWORD": SECRET, "AWKWARD": awkward, "PATH": "/tmp/mine"}
    session = alice.running(env=env)
    assert session["env"] == ["PASSWORD", "AWKWARD", "PATH"]
    kernel = Kernel(alice.open(session["id"], "jupyterlab"))
    names = list(env)
    code = f"import os, json; print(json.dumps([os.environ[n] for n in {names}]))"
    password, seen, path = kernel.value(code)
    assert (password, seen) == (SECRET, awkward)
    assert path.startswith("/tmp/mine:/")
    window = Terminal(alice.open(session["id"], "terminal"))
    assert SECRET in window.run('echo "$PASSWORD"')
    window.close()

    assert SECRET not in json.dumps(alice.list())
    job = session["job_id"]
    outputs = [
        cluster.run("ctl", "scontrol", "show", "job", "--details", job),
        cluster.run("ctl", "scontrol", "write", "batch_script", job, "-"),
        cluster.run("login", "squeue", "--jobs", job, "--Format=ALL", check=False),
        cluster.run("ctl", "sacct", "--jobs", job, "--format=ALL", "--parsable2"),
        cluster.run("ctl", "sacct", "--jobs", job, "--batch-script", check=False),
        cluster.run("ctl", "sacct", "--jobs", job, "--env-vars", check=False),
        # Argument lists, and the files of the session.
        cluster.shell(session["node"], "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"),
        cluster.shell("login", f"cat .slipway/logs/{session['id']}.log", user="alice", check=False),
        cluster.shell("login", f"grep -rl {SECRET} /home/alice/.slipway || true"),
        cluster.log_tail("portal", 5000),
    ]
    assert session["id"] in outputs[0]
    assert "apptainer" in outputs[1]
    assert [text for text in outputs if SECRET in text] == []


def test_several_sessions_at_once(alice: Api, cluster: Cluster) -> None:
    sessions = alice.launch_all(name="many", count=5, resources=TINY, env={"A": "b"})
    assert [session["name"] for session in sessions] == [f"many{n}" for n in range(1, 6)]
    jobs = cluster.queue("alice")
    assert {session["id"] for session in sessions} <= set(jobs)
    assert len({jobs[session["id"]].id for session in sessions}) == 5
    # Each is a separate session: ending one does not affect the others.
    alice.stop(sessions[0]["id"])
    alice.wait_state(sessions[0]["id"], "FINISHED")
    alice.wait_state(sessions[1]["id"], "RUNNING")


def test_the_same_key_is_the_same_sessions(alice: Api, cluster: Cluster) -> None:
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    body = SMALL | {"count": 3, "resources": TINY}
    answers = [
        alice.ask("POST", "/sessions", 201, json=body, headers=headers)["sessions"]
        for _ in range(2)
    ]
    first, again = ([session["id"] for session in sessions] for sessions in answers)
    alice.launched += first
    assert first == again
    assert len(first) == 3
    other = alice("POST", "/sessions", json=body | {"count": 4}, headers=headers)
    assert other.status_code == 409
    alice.wait_submitted(answers[0])
    assert len([name for name in cluster.queue("alice") if name in first]) == 3


def test_all_or_no_sessions_survive_a_kill_during_the_launch(alice: Api, cluster: Cluster) -> None:
    killer = Killer(cluster, "web", "worker")
    blow = threading.Timer(0.1, killer.strike)
    body = SMALL | {"count": 20, "name": "chop", "resources": TINY}
    earlier = {session["id"] for session in alice.list()}
    blow.start()
    with contextlib.suppress(requests.RequestException):
        answer = alice("POST", "/sessions", json=body)
        assert answer.status_code in (201, 502, 503, 504), answer.text
    blow.join()
    wait_for("the portal again", lambda: healthy(cluster), 60)
    made = [session["id"] for session in alice.list() if session["id"] not in earlier]
    alice.launched += made
    assert len(made) in (0, 20)

    def all_queued() -> bool:
        jobs = [alice.get(session)["job_id"] for session in made]
        return all(jobs) and len(set(jobs)) == len(made)

    wait_for("a job for each of them", all_queued, 100)
    known = [job.name for job in cluster.accounted("now-10minutes") if job.name in made]
    assert sorted(known) == sorted(made), "one job each, and none twice"


def test_no_session_remains_if_slurm_refuses_one(bob: Api, cluster: Cluster) -> None:
    before = {session["id"] for session in bob.list()}
    since = cluster.clock()
    key = {"Idempotency-Key": uuid.uuid4().hex}
    body = SMALL | {"count": 4, "resources": TINY, "env": {"PASSWORD": SECRET}}
    with at_most(cluster, "bob", 2):
        answer = bob("POST", "/sessions", json=body, headers=key)
        assert answer.status_code == 422, answer.text
        assert "Slurm refused it" in answer.text
        # One that Slurm was too slow to cancel is ending until Slurm says that its job is over.
        left = [session["state"] for session in bob.list() if session["id"] not in before]
        assert set(left) <= {"ENDING"}
    jobs = [job for job in cluster.accounted(since) if job.user == "bob"]
    assert len(jobs) == 2, "two were queued before the third was refused"

    def gone() -> bool:
        live = [job for job in cluster.queue("bob").values() if not job.state.startswith("CANC")]
        ours = [job for job in live if job.name in {done.name for done in jobs}]
        left = [
            cluster.shell("login", f"ls -d /home/bob/.slipway/sessions/{job.name}", check=False)
            for job in jobs
        ]
        return not ours and not any(left)

    wait_for("the refused launch cleaned up", gone, 30)
    # The key can be reused, and now the launch succeeds.
    sessions = bob.ask("POST", "/sessions", 201, json=body | {"count": 2}, headers=key)["sessions"]
    bob.launched += [session["id"] for session in sessions]


@pytest.mark.parametrize(
    ("resources", "size"),
    [({"shared_memory": "64m", "memory": "600m"}, 64), ({"memory": "400m"}, 200)],
)
def test_shared_memory_has_its_size_and_is_charged(alice: Api, resources: Json, size: int) -> None:
    session = alice.running(resources={"cpus": 1} | resources)
    assert session["resources"]["shared_memory"] == f"{size}m"
    kernel = Kernel(alice.open(session["id"], "jupyterlab"))
    mounted, written, error, used = kernel.value(SHM)
    assert (mounted, error) == (size, 28)  # ENOSPC
    assert size - 2 < written <= size  # Jupyter may have files there, too
    assert used > size
    window = Terminal(alice.open(session["id"], "terminal"))
    assert str(size * 1024) in window.run("df -k /dev/shm")
    window.close()


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("env.SLURM_JOB_ID", {"env": {"SLURM_JOB_ID": "1"}}),
        ("count", {"count": 21}),
        ("resources.shared_memory", {"resources": TINY | {"shared_memory": "301m"}}),
    ],
)
def test_wrong_fields_are_named(alice: Api, field: str, change: Json) -> None:
    before = alice.list()
    answer = alice("POST", "/sessions", json=SMALL | change)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert [s["id"] for s in alice.list()] == [s["id"] for s in before]
