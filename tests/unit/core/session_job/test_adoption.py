"""What sessions claim about themselves, and what Slurm says of their jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.launch.mounts import Mount
from portal.core.session.session import Home, Session
from portal.core.session_job.adoption import (
    UNKNOWN,
    adopt,
    claims_of,
    earliest_job,
    is_session_id,
    read_claims,
    read_spec,
)

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
ID = "0123456789abcdef" * 2
REPORT = JobReport("7", "alice", JobState.RUNNING, nodes=("n1",), cpus=2, memory_mb=900)
SESSION = Session(
    id=ID,
    name="careful",
    named=True,
    owner="alice",
    environment="python",
    version="3.13",
    cpus=1,
    memory_mb=600,
    fgpu=0.5,
    gpu_kind="a100",
    gres="shard:a100:2",
    gpu_memory_mb=20480,
    gpu_sm_percent=50,
    env_names=("MODE",),
    mounts=(Mount(folder="data", read_only=True), Mount(folder="bob/results")),
    home=Home.PERSISTENT,
    hub_prefix="/user/alice/",
    created=NOW,
    submitted=NOW,
    token_hash="x",
)


def test_a_session_is_adopted_as_it_was() -> None:
    report = JobReport(
        "7", "alice", JobState.RUNNING, nodes=("n1",), cpus=1, memory_mb=600, shards=2
    )
    told = json.loads(json.dumps(claims_of(SESSION)))
    again = adopt(ID, report, read_claims(told), "x", NOW)
    changed = {
        name for name in Session.model_fields if getattr(again, name) != getattr(SESSION, name)
    }
    assert changed == {"job_id"}


def test_one_that_waits_for_the_end_of_maintenance_still_does() -> None:
    """And a maintenance that ends earlier, or was lost as well, moves it."""
    later = datetime(2026, 11, 25, 6, tzinfo=UTC)
    waits = JobReport("7", "alice", JobState.PENDING, reason="BeginTime", start=later)
    for report, begin in (
        (waits, later),
        (replace(waits, reason="Priority"), None),
        (replace(waits, restarts=1), None),  # Slurm's own pause
        (replace(REPORT, start=NOW), None),
    ):
        assert adopt(ID, report, read_claims({}), "x", NOW).begin == begin


def test_no_secret_is_told() -> None:
    assert not {"token_hash", "token", "env"} & set(claims_of(SESSION))


def test_what_slurm_says_cannot_be_claimed() -> None:
    claims = read_claims(
        claims_of(SESSION)
        | {"owner": "bob", "cpus": 64, "job_id": "1", "state": "RUNNING", "id": "x"}
    )
    session = adopt(ID, REPORT, claims, "hash", NOW)
    assert (session.id, session.owner, session.cpus, session.job_id) == (ID, "alice", 2, "7")
    assert (session.gres, session.fgpu) == ("", None)


@pytest.mark.parametrize("gres", ["shard:4", "gpu:2", "shard:x", "gpu:a:b:c:2", "gpu:99999999999"])
def test_a_gpu_is_the_one_that_slurm_granted(gres: str) -> None:
    report = JobReport("7", "alice", JobState.RUNNING, nodes=("n1",), shards=2)
    session = adopt(ID, report, read_claims({"gres": gres, "fgpu": 8}), "x", NOW)
    assert (session.gres, session.fgpu) == ("shard:2", None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", "a b"),
        ("name", "x" * 65),
        ("name", 7),
        ("environment", "../etc"),
        ("environment", "<b>"),
        ("version", ["3.13"]),
        ("image", "docker://"),
        ("mounts", [{"folder": "../x"}]),
        ("mounts", ["data"] * 30),
        ("env_names", ["A B"]),
        ("env_names", ["A"] * 101),
        ("home", "elsewhere"),
        ("fgpu", float("inf")),
        ("gpu_memory_mb", -1),
        ("shared_memory_mb", 2**40),
        ("hub_prefix", "/" * 300),
        ("gres", "x" * 101),
    ],
)
def test_a_claim_that_cannot_be_is_left_out_alone(name: str, value: Any) -> None:
    claims = read_claims({"gpu_kind": "a100", name: value, "of_a_later_release": {}})
    assert getattr(claims, name) == getattr(read_claims({}), name)
    assert claims.gpu_kind == "a100"


def test_without_claims_it_has_a_name_that_stays_the_same() -> None:
    one, other = (adopt(ID, REPORT, read_claims({}), "x", NOW) for _ in range(2))
    assert one.name == other.name
    assert (one.named, one.environment, one.version) == (False, UNKNOWN, UNKNOWN)


SPEC: dict[str, Any] = {
    "session": ID,
    "token": "a-secret-token",
    "callback": "https://portal:8443",
    "env": {"MODE": "fast", "SLIPWAY_X": "not a claim"},
    "adoption": {"proof": "/tmp/x", "about": {"env_names": ["MODE"]}},
}


def test_a_waiting_sessions_specification() -> None:
    found = read_spec(json.dumps(SPEC).encode(), ID, "https://portal:8443")
    assert found is not None
    assert (found.token, found.env) == ("a-secret-token", {"MODE": "fast"})
    earlier = {name: SPEC[name] for name in ("session", "token", "callback")}
    assert read_spec(json.dumps(earlier).encode(), ID, "https://portal:8443") is not None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        json.dumps(SPEC | {"session": "f" * 32}).encode(),
        json.dumps(SPEC | {"callback": "https://other:8443"}).encode(),
        json.dumps(SPEC | {"token": ""}).encode(),
        json.dumps(SPEC | {"token": 7}).encode(),
        json.dumps(SPEC)[:-5].encode(),
    ],
)
def test_other_specifications_are_not_read(data: bytes) -> None:
    assert read_spec(data, ID, "https://portal:8443") is None


def test_a_name_belongs_to_the_first_job_that_is_not_over() -> None:
    jobs = [
        JobReport("12", "bob", JobState.PENDING),
        JobReport("9", "alice", JobState.RUNNING),
        JobReport("3", "carol", JobState.CANCELLED),
    ]
    found = earliest_job(jobs)
    assert found is not None
    assert found.user == "alice"
    assert earliest_job(jobs[2:]) is None


@pytest.mark.parametrize(
    "name", ["check-" + "a" * 26, "A" * 32, "a" * 31, "a" * 33, "a" * 32 + "\n"]
)
def test_other_jobs_names(name: str) -> None:
    assert not is_session_id(name)
