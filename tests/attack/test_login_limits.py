"""L6: password guessing is slow, from any number of addresses and on every process."""

from __future__ import annotations

import json
import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.attack.throwaway import throwaway
from tests.slurm.conftest import MakeApi
from tests.support.client import Api
from tests.support.cluster import Cluster, in_database, wait_for

MACHINES = ("ctl", "login", "n1", "n2")
INSIDE = 8080
"""The portal's port within the cluster (compose.yaml)."""
PER_ACCOUNT = 20
"""Attempts per hour: `web.logins_per_account`."""


def guess(cluster: Cluster, machine: str, user: str, password: str, times: int) -> list[int]:
    """Try a password from one machine of the cluster; the status of each response."""
    body = json.dumps({"username": user, "password": password})
    output = cluster.run(
        machine, "curl", "--insecure", "--silent", "--output", "/dev/null", "--noproxy", "*",
        "--connect-to", f"::portal:{INSIDE}", "--max-time", "60",
        "--header", "Content-Type: application/json", "--data", body,
        "--write-out", "%{http_code}\n", *[f"{cluster.url}/api/v1/tokens"] * times,
        seconds=300,
    )  # fmt: skip
    # --output applies to the first URL only; the other responses are in between.
    return [int(line[-3:]) for line in output.splitlines() if line[-3:].isdigit()]


def spread(cluster: Cluster, user: str, each: int) -> list[int]:
    """Guesses from every machine, in parallel."""
    password = secrets.token_hex(4)
    with ThreadPoolExecutor(len(MACHINES)) as pool:
        found = pool.map(lambda machine: guess(cluster, machine, user, password, each), MACHINES)
    return [status for statuses in found for status in statuses]


@pytest.mark.timeout(300)
def test_l6_the_limit_per_account_counts_all_addresses(cluster: Cluster) -> None:
    """L6: the only limit was ten a minute for each address and process."""
    cluster.forget_attempts()
    found = spread(cluster, f"ghost{secrets.token_hex(3)}", 7)
    assert found.count(401) == PER_ACCOUNT, found
    assert found.count(429) == len(MACHINES) * 7 - PER_ACCOUNT


@pytest.mark.timeout(300)
def test_l6_guessing_does_not_lock_the_owner_out(cluster: Cluster) -> None:
    """L6: an address with an earlier login can still log in while others guess."""
    with throwaway(cluster, "login") as account:
        assert account.token()
        cluster.forget_attempts()
        wait_for("a quiet minute at each address", lambda: _quiet(cluster, account.name), 90, 5)
        found = spread(cluster, account.name, 7)
        assert 429 in found
        assert guess(cluster, "n1", account.name, account.password, 1) == [429]
        assert account.token(), "locked out"


def _quiet(cluster: Cluster, _user: str) -> bool:
    return spread(cluster, f"x{secrets.token_hex(3)}", 1) == [401] * len(MACHINES)


def test_l6_refusals_do_not_flood_the_journal(cluster: Cluster, make_api: MakeApi) -> None:
    """L6: each refusal was a line, kept for a year."""
    # Only a limited number of names per hour have lines of their own; other tests guess, too.
    in_database(cluster, "DELETE FROM refusal")
    user = f"ghost{secrets.token_hex(3)}"
    api = Api(cluster, "")
    body = {"username": user, "password": "x"}

    def refused() -> int:
        return api("POST", "/tokens", json=body).status_code

    cluster.forget_attempts()
    wait_for("a quiet minute at this address", lambda: refused() == 401, 90, 5)
    assert {refused() for _ in range(3)} <= {401, 429}
    found = make_api("admin").ask("GET", "/journal", params={"who": user})["entries"]
    assert [entry["action"] for entry in found] == ["login.refused"]


def test_l6_known_and_unknown_accounts_get_the_same_response(cluster: Cluster) -> None:
    """L6: the response does not reveal which accounts exist, whatever the limit."""
    answers = set()
    for user in ("bob", f"ghost{secrets.token_hex(3)}"):
        body = {"username": user, "password": "wrong"}
        answer = Api(cluster, "")("POST", "/tokens", json=body)
        answers.add((answer.status_code, answer.text))
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.status_code != 429 or answer.headers["Retry-After"].isdigit()
    assert len(answers) == 1
