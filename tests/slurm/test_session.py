"""The life of a session: launched, used in notebook and terminal, ended."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.apps import Kernel, Terminal
from tests.support.cgroups import MB, SEEN_IN_CGROUP
from tests.support.client import NO_GPU, Api, Json, Visitor
from tests.support.cluster import Cluster, wait_for


@pytest.fixture(scope="module")
def lab(researcher: Api, session: Json) -> Visitor:
    """JupyterLab of the shared session, opened."""
    return researcher.open(session["id"], "jupyterlab")


@pytest.fixture
def terminal(researcher: Api, session: Json) -> Iterator[Terminal]:
    """The terminal of the shared session, in a window."""
    window = Terminal(researcher.open(session["id"], "terminal"))
    yield window
    window.close()


def test_launch_passes_through_the_queue(alice: Api, cluster: Cluster) -> None:
    session = alice.launch(name="firstone")
    assert session["state"] == "PENDING"
    assert session["resources"] == {"cpus": 1, "memory": "600m", "shared_memory": "300m"} | NO_GPU
    running = alice.wait_state(session["id"], "RUNNING")
    job = cluster.queue("alice")[session["id"]]
    assert (job.id, job.state) == (running["job_id"], "RUNNING")
    assert running["node"] in ("n1", "n2")
    assert running["started"] > running["created"][:19]
    assert running["name"] == "firstone"


def test_the_cgroup_has_the_requested_limits(lab: Visitor) -> None:
    memory, *cores = Kernel(lab).value(SEEN_IN_CGROUP)
    assert memory == 600 * MB
    assert cores == [1, 1, 1]


def answers(kernel: Kernel) -> bool:
    """Whether a kernel runs a cell; messages sent while Jupyter restarts it are lost."""
    kernel.close()
    try:
        return kernel.run("print(6 * 7)", seconds=5).text == "42\n"
    except (TimeoutError, AssertionError):
        return False


def test_only_the_kernel_over_its_memory_limit_is_killed(
    alice: Api, bob: Api, cluster: Cluster
) -> None:
    neighbour = bob.running()
    # Not the shared one: a second attempt, and other tests, need one that works.
    session = alice.running()
    kernel = Kernel(alice.open(session["id"], "jupyterlab"))
    assert kernel.run("x = b'x' * (900 * 2**20)\nprint('survived')").died
    wait_for(
        "the kill in the figures of use",
        lambda: (alice.get(session["id"])["usage"] or {}).get("oom_kills"),
        30,
    )
    assert alice.get(session["id"])["state"] == "RUNNING"
    assert bob.get(neighbour["id"])["state"] == "RUNNING"
    wait_for("the kernel again", lambda: answers(kernel), 60)
    nodes = cluster.run("login", "sinfo", "--noheader", "--Node", "--format=%T").split()
    assert all(state in ("idle", "mixed", "allocated") for state in nodes)


def test_notebook_and_terminal_share_their_files(lab: Visitor, terminal: Terminal) -> None:
    Kernel(lab).run("open('from-notebook.txt', 'w').write('hello terminal')")
    assert "from-notebook.txt" in terminal.run("ls")
    assert "hello terminal" in terminal.run("cat from-notebook.txt")
    terminal.run("echo hello notebook > from-terminal.txt")
    files = [entry["name"] for entry in lab.get("/api/contents/").json()["content"]]
    assert {"from-notebook.txt", "from-terminal.txt"} <= set(files)


def test_reload_finds_the_same_terminal(researcher: Api, session: Json) -> None:
    visitor = researcher.open(session["id"], "terminal")
    before = Terminal(visitor)
    before.run("kept=treasure; echo far-'a'way; seq 1000 1200")
    before.close()
    after = Terminal(visitor)
    assert "found-treasure" in after.run('echo "found-$kept"')
    after.seen = ""
    for _ in range(80):  # five lines each, as tmux scrolls
        after.type(Terminal.WHEEL_UP)
    after.wait_for("far-away")
    after.type("q")
    after.close()


def test_nothing_remains_after_termination(alice: Api, cluster: Cluster) -> None:
    session = alice.running()
    alice.open(session["id"], "jupyterlab")
    terminal = Terminal(alice.open(session["id"], "terminal"))
    # A process that has left the process group and stays.
    terminal.run("(setsid nohup sleep 3333 >/dev/null 2>&1 &)")
    folder = f"/home/alice/.slipway/sessions/{session['id']}"
    assert cluster.shell("login", f"ls {folder}", user="alice").strip()
    assert cluster.shell(session["node"], "pgrep -fx 'sleep 3333'").strip()
    begun = time.monotonic()
    assert alice.stop(session["id"])["state"] in ("ENDING", "FINISHED")

    def all_gone() -> bool:
        members = f"grep -ls '/job_{session['job_id']}/' /proc/[0-9]*/cgroup"
        script = f"{members}; pgrep -fx 'sleep 3333'; ls -d {folder}"
        left = cluster.shell(session["node"], script, check=False)
        job = cluster.queue("alice")[session["id"]]
        return not left.strip() and job.state == "CANCELLED"

    wait_for("job, processes and files gone", all_gone, 15)
    ended = alice.wait_state(session["id"], "FINISHED", seconds=15)
    assert time.monotonic() - begun < 10
    assert ended["end"]["text"] == "Ended by alice."
    assert ended["ended"] is not None
    assert alice.stop(session["id"])["end"] == ended["end"]


def test_app_of_an_ended_session_is_closed(alice: Api) -> None:
    session = alice.running()
    lab = alice.open(session["id"], "jupyterlab")
    socket = Kernel(lab)
    socket.connect()
    alice.stop(session["id"])
    wait_for("the app shut", lambda: lab.get("/api/status").status_code != 200, 10)
    answer = alice("POST", f"/sessions/{session['id']}/apps/jupyterlab")
    assert answer.status_code == 409


def test_log_is_read_in_pieces(researcher: Api, session: Json) -> None:
    first = researcher.ask("GET", f"/sessions/{session['id']}/log")
    assert "Ready on" in first["log"]
    more = researcher.ask(
        "GET", f"/sessions/{session['id']}/log", params={"offset": first["next_offset"]}
    )
    assert "Ready on" not in more["log"]
