"""A user's shell forges job numbers: the portal asks Slurm itself."""

from __future__ import annotations

import time

import pytest

from tests.support.client import OVER, Api, Json
from tests.support.cluster import Cluster, in_database, wait_for
from tests.support.hostile_shells import REAL_SBATCH, hostile_command

SMALLEST: Json = {"resources": {"cpus": 1, "memory": "300m"}}


@pytest.mark.parametrize("number", ["²", "999999999999999999", "1 2", "1", ""])
def test_the_printed_job_number_is_not_trusted(number: str, bob: Api, cluster: Cluster) -> None:
    """M7: the job exists, the shell prints another number."""
    script = f'{REAL_SBATCH} "$@" > /dev/null && printf "%s\\n" "{number}"'
    with hostile_command(cluster, "bob", "sbatch", script):
        session = bob.launch(**SMALLEST)
    real = wait_for("the job", lambda: cluster.queue("bob").get(session["id"]))
    assert session["job_id"] == real.id
    bob.wait_state(session["id"], "RUNNING")


@pytest.mark.timeout(200)
def test_a_forged_job_number_does_not_break_accounting(
    alice: Api, bob: Api, cluster: Cluster
) -> None:
    """M7: "²" made the one query for everybody's jobs fail, and the session never ended."""
    hers = alice.running(**SMALLEST)
    with hostile_command(cluster, "bob", "sbatch", "echo ²"):
        his = bob.launch(**SMALLEST)
    assert bob.get(his["id"])["job_id"] is None
    begun = time.monotonic()
    alice.stop(hers["id"])
    ended = alice.wait_state(hers["id"], *OVER)
    assert time.monotonic() - begun < 20
    # Only accounting knows this, so it was queried and did answer.
    assert ended["end"]["text"] == "Ended by alice."
    bob.stop(his["id"])
    make_earlier(cluster, his["id"], "submitted")
    wait_for("its end", lambda: bob.get(his["id"])["state"] in OVER, 120)
    log = cluster.log_tail("portal", 200)
    assert "Bad job/step" not in log


@pytest.mark.timeout(300)
def test_a_session_with_a_wrong_stored_number_can_be_ended(bob: Api, cluster: Cluster) -> None:
    """M7: a number stored by an earlier version; the job is found by its name, or ended."""
    session = bob.running(**SMALLEST)
    right = session["job_id"]
    set_number(cluster, session["id"], "²")
    lost = f"SELECT lost FROM session WHERE id = '{session['id']}'"
    wait_for("Slurm does not know it", lambda: "None" not in in_database(cluster, lost))
    make_earlier(cluster, session["id"], "lost")
    wait_for("the right number", lambda: bob.get(session["id"])["job_id"] == right or None, 150)
    cluster.run("login", "scancel", right)
    bob.wait_state(session["id"], *OVER, seconds=60)


def make_earlier(cluster: Cluster, session: str, what: str) -> None:
    """Age the session past the minute that the portal waits: it compares stored times."""
    in_database(
        cluster,
        f"UPDATE session SET {what} = datetime({what}, '-60 seconds') WHERE id = '{session}'",
    )


def set_number(cluster: Cluster, session: str, number: str) -> None:
    """Store a job number as an earlier version did."""
    in_database(cluster, f"UPDATE session SET job_id = '{number}' WHERE id = '{session}'")
