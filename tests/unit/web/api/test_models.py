"""The response model: which columns of a session are shown, and how many files name a field."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from portal.core.cluster.usage import SlurmStatus
from portal.core.launch.mounts import Mount
from portal.core.session.session import Cause, Home, Session, State
from portal.core.session_job.runner_protocol import Heartbeat
from portal.core.site_rules import SiteRules
from portal.store.tables import SessionRow
from portal.web.api.models.sessions import EndOut, SessionContext, SessionOut
from tests.support.paths import ROOT

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=7)
CONTEXT = SessionContext(SlurmStatus(NOON, None), NOON, rules=SiteRules(idle_minutes=60))
BASE = Session(
    id="0" * 32,
    name="first",
    owner="alice",
    environment="python",
    version="3.13",
    cpus=1,
    memory_mb=1024,
    fgpu=0.5,
    gpu_kind="demo",
    gpu_memory_mb=2048,
    gpu_sm_percent=25,
    shared_memory_mb=64,
    time_limit=60,
    state=State.PENDING,
    pending_reason="Priority",
    created=NOON,
    submitted=NOON,
    token_hash="0" * 64,
    cause=Cause.FINISHED,
    end_text="It ended.",
    usage_at=NOON,
    log_read=NOON,
    log_read_by="root",
    last_used=NOON,
)
"""With every part of the response present; no session is in all of these conditions at once."""

SHOWN: dict[str, tuple[Any, set[str]]] = {
    "id": ("1" * 32, {"id"}),
    "name": ("second", {"name"}),
    "owner": ("bob", {"owner"}),
    "environment": ("r", {"environment", "environment_title"}),
    "version": ("4.4", {"version", "version_label"}),
    "image": ("images/mine.sif", {"image"}),
    "cpus": (2, {"resources.cpus"}),
    "memory_mb": (2048, {"resources.memory"}),
    "partition": ("main", {"resource_group"}),
    "account": ("physics", {"account"}),
    "qos": ("long", {"qos"}),
    "reservation": ("course", {"reservation"}),
    "constraint": ("skylake&ssd", {"constraint"}),
    "exclusive": (True, {"exclusive"}),
    "time_limit": (90, {"time_limit"}),
    "fgpu": (1.0, {"resources.fgpu"}),
    # The settings have a title for it; these have none.
    "gpu_kind": ("other", {"resources.gpu.kind", "resources.gpu.title"}),
    "gpu_memory_mb": (4096, {"resources.gpu.memory"}),
    "gpu_sm_percent": (50, {"resources.gpu.sm_percent"}),
    "shared_memory_mb": (128, {"resources.shared_memory"}),
    "env_names": (("KEY",), {"env"}),
    "mounts": ((Mount(folder="data"),), {"mounts", "home.keeps"}),
    "named": (True, {"named"}),
    "hub_prefix": ("/user/alice/", {"hub_prefix"}),
    "home": (Home.PERSISTENT, {"home.kind", "home.keeps"}),
    "home_files": (3, {"home.deletes_files"}),
    "home_bytes": (12_000_000, {"home.deletes_bytes"}),
    "memory_peak": (4096, {"usage.memory_peak"}),
    "oom_at": (LATER, {"usage.oom_at"}),
    "oom_program": ("python3", {"usage.oom_program"}),
    "oom_seen": (LATER, {"usage.oom_seen"}),
    "end_seen": (LATER, {"end.seen"}),
    "state": (State.FAILED, {"state", "reason"}),
    "created": (LATER, {"created"}),
    "job_id": ("4711", {"job_id"}),
    "pending_reason": ("Resources", {"reason.code", "reason.text", "reason.advice"}),
    "estimated_start": (LATER, {"reason.estimated_start"}),
    "ahead": (3, {"reason.ahead"}),
    "lost": (
        LATER,
        {"state", "unknown_since", "reason.code", "reason.text", "reason.advice"},
    ),
    "node": ("n1", {"node"}),
    "started": (LATER, {"started"}),
    "ready": (LATER, {"ready"}),
    "preset": ("small", {"preset"}),
    "deadline": (LATER, {"deadline"}),
    "restarts": (1, {"restarts"}),
    "requeued": (LATER, {"requeued", "reason.text"}),
    "ended": (LATER, {"ended"}),
    "cause": (Cause.FAILED, {"end.cause"}),
    "end_text": ("It failed.", {"end.text"}),
    "end_log": ("Killed", {"end.log"}),
    "exit_code": (137, {"end.exit_code"}),
    "usage_at": (None, {"usage"}),
    "cpu_percent": (12.5, {"usage.cpu_percent"}),
    "memory_used": (1024, {"usage.memory"}),
    "oom_kills": (1, {"usage.oom_kills"}),
    "gpu_memory_used": (2048, {"usage.gpu_memory"}),
    "gpu_percent": (50.0, {"usage.gpu_percent"}),
    "gpu_kills": (1, {"usage.gpu_kills"}),
    "log_read": (LATER, {"log_read.at"}),
    "log_read_by": ("admin", {"log_read.by"}),
    "last_used": (LATER, {"last_used"}),
}
"""For each shown column: a value other than BASE's, and the fields of the response that it changes.
"""
INTERNAL = {
    "gres",
    "shared_memory_cap_mb",  # only the default size of shared memory depends on it
    "token_hash",
    "begin",  # said by the reason to wait
    "submitted",
    "attempts",
    "batch",
    "address",
    "port",
    "extending",
    "stop_requested",
    "stopped_by",
    "stop_reason",  # part of the end's text
    "progress",  # part of the reason while the session starts
    "progress_at",
    "cleaned",
    "cpu_seconds",
    "apps",
}


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {path: value}
    parts = {f"{path}.{key}".lstrip("."): inner for key, inner in value.items()}
    return {
        name: leaf for part, inner in parts.items() for name, leaf in _flat(inner, part).items()
    }


def _changed(column: str, value: object) -> set[str]:
    before = _flat(_answer(BASE))
    after = _flat(_answer(BASE.model_copy(update={column: value})))
    different = {name for name in before | after if before.get(name) != after.get(name)}
    # A part that appears or disappears as a whole counts once.
    gone = {name for name in after if name not in before} | {n for n in before if n not in after}
    return {re.sub(r"^(reason|usage)\..*", r"\1", n) if n in gone else n for n in different}


def _answer(session: Session) -> dict[str, Any]:
    return SessionOut.of(session, [], [], CONTEXT).model_dump(mode="json")


def test_every_column_is_shown_or_internal() -> None:
    columns = set(SessionRow.model_fields)
    assert set(SHOWN) | INTERNAL == columns
    assert not set(SHOWN) & INTERNAL


@pytest.mark.parametrize("column", SHOWN)
def test_a_column_is_shown_once(column: str) -> None:
    value, paths = SHOWN[column]
    assert _changed(column, value) == paths


@pytest.mark.parametrize("column", sorted(INTERNAL - {"token_hash", "apps"}))
def test_internal_columns_are_not_shown(column: str) -> None:
    now = getattr(BASE, column)
    other = {str: "secret", int: 77, bool: True, type(None): NOON}.get(type(now), NOON)
    assert _changed(column, other) == set()


@pytest.mark.parametrize("meter", ["gpu_kills", "gpu_memory_used"])
def test_a_meter_is_named_in_four_files(meter: str) -> None:
    """The value, the table, the runner's report and the response; pages may name it as well."""
    folders = ("core", "services", "store", "adapters", "web/api")
    found = [p for folder in folders for p in (ROOT / "portal" / folder).rglob("*.py")]
    naming = {
        str(path.relative_to(ROOT / "portal"))
        for path in found
        if "versions" not in path.parts and meter in path.read_text(encoding="utf-8")
    }
    assert naming == {
        "core/session/session.py",
        "store/tables/session.py",
        "core/session_job/runner_protocol.py",
        "web/api/models/sessions.py",
    }
    assert meter in Heartbeat(cpu_seconds=1.0, memory_bytes=1).meters()


def test_times_have_their_offset_and_optional_fields_may_be_absent() -> None:
    shown = _answer(BASE)
    assert shown["created"] == "2026-11-20T12:00:00+00:00"
    end = EndOut.of(BASE)
    assert end is not None
    assert "log" in end.model_dump(exclude_unset=True)
    assert "log" not in end.without_log().model_dump(exclude_unset=True)
