"""Logs are read only as regular files of their owner; access by administrators is visible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.client import OVER, Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.hostile_shells import duration, runner_pids

SMALLEST: Json = {"resources": {"cpus": 1, "memory": "300m"}}


@contextmanager
def replaced_log(cluster: Cluster, session: str, how: str) -> Iterator[None]:
    """Replace bob's log by something else."""
    log = f".slipway/logs/{session}.log"
    try:
        cluster.shell("login", f"cd; mv {log} {log}.kept; {how.format(log=log)}", user="bob")
        yield
    finally:
        cluster.shell("login", f"cd; rm -rf {log}; mv {log}.kept {log}", user="bob", check=False)


@pytest.mark.parametrize(
    "how",
    ["mkfifo {log}", "ln -s /dev/zero {log}", "ln -s /etc/passwd {log}", "mkdir {log}",
     "ln -s nowhere {log}"],
)  # fmt: skip
def test_only_a_regular_file_is_read_as_a_log(how: str, bob: Api, cluster: Cluster) -> None:
    """E40: a FIFO blocked a thread for 20 s."""
    session = bob.running(**SMALLEST)["id"]
    answers = []
    with replaced_log(cluster, session, how):
        seconds = duration(
            lambda: answers.append(bob("GET", f"/sessions/{session}/log", timeout=60))
        )
    assert answers[0].status_code == 409, answers[0].text[:200]
    assert "not a regular file" in answers[0].json()["detail"]
    assert seconds < 5


@pytest.mark.timeout(200)
def test_a_fifo_in_place_of_a_log_delays_nobody(alice: Api, bob: Api, cluster: Cluster) -> None:
    """E40: the worker read it, 20 s each time for ten minutes; alice waited for her reason."""
    session = bob.running(**SMALLEST)
    his = session["id"]
    with replaced_log(cluster, his, "mkfifo {log}"):
        kill(cluster, session)
        ended = bob.wait_state(his, *OVER)
        assert ended["state"] == "FAILED", ended["end"]
        session = alice.running(**SMALLEST)
        hers = session["id"]
        kill(cluster, session)
        alice.wait_state(hers, *OVER)
        # Its last lines and its files: the worker's tasks after the end.
        wait_for("her log's last lines", lambda: alice.get(hers)["end"]["log"], 12)
        wait_for("his session's clean-up", lambda: is_clean(cluster, his), 30)


def kill(cluster: Cluster, session: Json) -> None:
    """Make a session fail, as its owner."""
    pids = runner_pids(cluster, session)
    cluster.run(session["node"], "kill", "-KILL", *pids, user=session["owner"])


def is_clean(cluster: Cluster, session: str) -> bool:
    """Whether the portal has finished its tasks after the end."""
    code = (
        "import sqlite3; d = sqlite3.connect('/var/lib/slipway/slipway.db', timeout=20); "
        f"print(*d.execute('select cleaned from session where id=?', ('{session}',)).fetchone())"
    )
    return cluster.run("portal", "python", "-c", code).strip() == "1"


def test_reading_a_log_as_administrator_is_recorded(alice: Api, admin: Api, bob: Api) -> None:
    """L8: there was no line in the journal, and the owner was not informed."""
    session = alice.running(**SMALLEST)["id"]
    alice.ask("GET", f"/sessions/{session}/log")
    assert alice.get(session)["log_read"] is None
    assert bob("GET", f"/sessions/{session}/log").status_code == 404
    for _ in range(3):
        admin.ask("GET", f"/sessions/{session}/log")
    lines = admin.ask("GET", "/journal", params={"action": "log.read"})["entries"]
    mine = [line for line in lines if line["target"] == session]
    assert [line["who"] for line in mine] == ["admin"], mine
    read = alice.get(session)["log_read"]
    assert read["by"] == "admin"
    assert read["at"]
