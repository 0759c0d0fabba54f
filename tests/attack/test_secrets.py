"""L3, L9: values of environment variables are in no log and in no stolen database."""

from __future__ import annotations

import secrets

import pytest

from tests.support.client import Api, Json
from tests.support.cluster import Cluster, in_database, restart_portal

SMALL: Json = {"environment": "busybox", "resources": {"cpus": 1, "memory": "300m"}}
STATE = "/var/lib/slipway"


@pytest.fixture
def canary() -> str:
    """A secret that occurs nowhere else."""
    return f"CANARY-{secrets.token_hex(8)}"


def found_in(cluster: Cluster, canary: str) -> str:
    """The portal's files that contain a text."""
    return cluster.shell("portal", f"grep -rlaF {canary} {STATE} /run/slipway || true").strip()


def test_l9_a_stolen_database_has_no_value_of_a_variable(alice: Api, canary: str) -> None:
    """L9: session_env.variables was plain text, and so were presets' values."""
    session = alice.launch(env={"WANDB_API_KEY": canary}, key=canary[-16:], **SMALL)["id"]
    name = f"l9-{canary[-6:]}"
    body = SMALL | {"env": {"WANDB_API_KEY": canary}}
    assert alice("PUT", f"/presets/{name}", json=body).status_code == 201
    try:
        assert found_in(alice.cluster, canary) == ""
        again = alice.ask("POST", f"/sessions/{session}/relaunch", 201)["sessions"][0]["id"]
        alice.launched.append(again)
        assert alice.get(again)["env"] == ["WANDB_API_KEY"]
        keys = alice.cluster.shell("portal", f"stat -c %a {STATE}/keys {STATE}/keys/*").split()
        assert keys[0] == "700"
        assert set(keys[1:]) == {"600"}
    finally:
        alice("DELETE", f"/presets/{name}")


def test_l9_a_lost_key_is_reported_and_breaks_nothing_else(
    cluster: Cluster, alice: Api, canary: str
) -> None:
    """L9: everything but the values works without the key."""
    session = alice.launch(env={"A": canary}, **SMALL)["id"]
    cluster.shell("portal", f"mv {STATE}/keys {STATE}/keys.away")
    restart_portal(cluster, "web")
    try:
        alice.wait_state(session, "RUNNING", "PENDING", "STARTING")
        refused = alice("POST", f"/sessions/{session}/relaunch")
        assert refused.status_code == 503
        assert "key" in refused.json()["detail"]
        assert canary not in refused.text
        assert alice.launch(**SMALL)["id"]
    finally:
        cluster.shell("portal", f"mv {STATE}/keys.away {STATE}/keys")
        restart_portal(cluster, "web")
    again = alice.ask("POST", f"/sessions/{session}/relaunch", 201)["sessions"][0]["id"]
    alice.launched.append(again)


def test_l3_a_database_error_logs_no_value(cluster: Cluster, alice: Api, canary: str) -> None:
    """L3: the log had the parameters of the failed statement."""
    in_database(cluster, "ALTER TABLE session_env RENAME TO session_env_away")
    try:
        answer = alice("POST", "/sessions", json=SMALL | {"env": {"WANDB_API_KEY": canary}})
    finally:
        in_database(cluster, "ALTER TABLE session_env_away RENAME TO session_env")
    assert answer.status_code == 500
    log = cluster.log_tail("portal", 300)
    assert "session_env" in log, "the failure itself is in the log"
    assert canary not in log
    assert "v1:" not in log, "nor its ciphertext"
