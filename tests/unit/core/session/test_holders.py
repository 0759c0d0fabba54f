"""Why a session waits: which of its owner's own sessions hold what it needs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from portal.core.cluster.gpu_usage import GpuCapacity
from portal.core.cluster.limits import Association, Limits, PartitionAccess, Qos, Tres
from portal.core.cluster.usage import Allocation, Capacity, ClusterUsage, SlurmStatus
from portal.core.session.holders import Holdings, needs_holders
from portal.core.session.session import Session, State
from portal.core.session.status import shown_reason

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
GPUS = GpuCapacity("demo", "Demo", fgpu=2, free=0, shard=0.5, gpu=2, most=1)
STATUS = SlurmStatus(NOON, None, rooms=(Capacity("main", 4, 4096, 2, 2048, (GPUS,)),))
LIMITS = Limits(
    enforced=("associations", "limits"),
    associations=(Association("lab", "alice", default_qos="normal"),),
    qos=(Qos("normal", user=Tres(3, 3072)),),
    partitions=(PartitionAccess("main"),),
)


def session(name: str, state: State = State.RUNNING, **changes: Any) -> Session:
    """A session of alice's in main."""
    values: dict[str, Any] = {
        "id": name,
        "name": name,
        "owner": "alice",
        "environment": "python",
        "version": "3.13",
        "cpus": 1,
        "memory_mb": 1024,
        "partition": "main",
        "state": state,
        "created": NOON,
        "submitted": NOON,
        "token_hash": "",
    }
    return Session.model_validate(values | changes)


def gpu(name: str, state: State = State.RUNNING, fgpu: float = 1) -> Session:
    """A session with a share of a GPU."""
    reason = "Resources" if state is State.PENDING else None
    return session(
        name,
        state,
        fgpu=fgpu,
        gres=f"shard:{int(fgpu * 2)}",
        gpu_kind="demo",
        pending_reason=reason,
    )


def why(waiting: Session, *others: Session, viewer: str = "", held: int = 0) -> tuple[str, str]:
    """The text and the advice; `held` cores and GiB are held under alice's limit."""
    use = ClusterUsage(
        (Allocation("alice", "lab", "normal", "main", held, held * 1024),), STATUS.rooms
    )
    holdings = Holdings(LIMITS, use, (*others, waiting), viewer)
    reason = shown_reason(waiting, STATUS, NOON, holdings)
    assert reason is not None
    return reason.text, reason.advice


def test_my_own_sessions_that_hold_the_gpu_are_named() -> None:
    waiting = gpu("calmfern3", State.PENDING)
    assert why(waiting, gpu("eagerbirch1"), gpu("eagerbirch2")) == (
        "It waits for a GPU share: 2 of 2 fGPU are in use, both by you (eagerbirch1, eagerbirch2).",
        "End one to start this now.",
    )


@pytest.mark.parametrize(
    ("others", "by", "advice"),
    [
        ([], "are in use.", "It starts by itself when there is room."),
        ([gpu("one")], "1 by you (one).", "End one to start this now."),
        ([gpu("one", fgpu=2)], "all by you (one).", "End one to start this now."),
        (
            [gpu("two", fgpu=1.5), gpu("half", fgpu=0.5)],
            "both by you (half, two).",
            "End two to start this now.",
        ),
        (
            [gpu("aa", fgpu=0.5), gpu("bb", fgpu=0.5)],
            "1 by you (aa, bb).",
            "End more than one of them to start this now.",
        ),
        ([gpu("one", State.ENDING)], "1 by you (one).", "It starts by itself when there is room."),
        ([gpu("one", State.PENDING)], "are in use.", "It starts by itself when there is room."),
    ],
)
def test_only_ends_that_help_are_advised(others: list[Session], by: str, advice: str) -> None:
    text, said = why(gpu("waits", State.PENDING), *others)
    assert text.endswith(by)
    assert said == advice


def test_jobs_ahead_are_not_overtaken() -> None:
    waiting = gpu("waits", State.PENDING).model_copy(update={"ahead": 3})
    assert why(waiting, gpu("one"))[1] == "End one to make room."


def test_a_reached_limit_is_told_in_figures() -> None:
    waiting = session("waits", State.PENDING, memory_mb=2048, pending_reason="QOSMaxMemoryPerUser")
    assert why(waiting, session("one"), session("two"), held=2) == (
        "You use 2 of your 3 GB (one, two), this needs 2 GB.",
        "End one to start this now.",
    )
    cores = session("waits", State.PENDING, cpus=2, pending_reason="QOSMaxCpuPerUserLimit")
    assert why(cores, held=2)[0] == "You use 2 of your 3 cores, this needs 2 cores."


def test_an_unexplained_limit_keeps_its_general_words() -> None:
    waiting = session("waits", State.PENDING, pending_reason="QOSMaxMemoryPerUser")
    assert why(waiting)[0] == "You have reached your limit of memory at once with QOS normal."


def test_administrators_are_told_whose_sessions_they_are() -> None:
    text, advice = why(gpu("waits", State.PENDING), gpu("one", fgpu=2), viewer="admin")
    assert text.endswith("all by alice (one).")
    assert advice == ""


def test_other_reasons_need_no_query() -> None:
    assert needs_holders(gpu("waits", State.PENDING))
    assert not needs_holders(session("waits", State.PENDING, pending_reason="Resources"))
    assert not needs_holders(session("waits", State.PENDING, pending_reason="PartitionDown"))
    assert not needs_holders(gpu("runs"))
