"""Preemption: whether Slurm may end or suspend a session in favour of other jobs."""

from __future__ import annotations

from portal.core.cluster.choice.access import entry_of
from portal.core.cluster.limits import Limits

# Sessions are submitted with --no-requeue, so Slurm cancels them instead of requeueing.
_MODES = {
    "cancel": "ended",
    "requeue": "ended",
    "suspend": "paused",
    "gang": "paused from time to time",
}


def preemption(partition: str, qos: str, limits: Limits) -> str:
    """The preemption that a session is subject to, in one sentence; "" if there is none."""
    if limits.preempt_type == "qos":
        others = [other.name for other in limits.qos if qos and qos in other.preempt]
        mode = next((other.preempt_mode for other in limits.qos if other.name == qos), "")
        preemptors = "jobs with QOS " + ", ".join(others)
    elif limits.preempt_type == "partition_prio":
        others = _above(partition, limits)
        mode = entry_of(partition, limits).preempt_mode
        preemptors = "jobs in " + ", ".join(others)
    else:
        return ""
    mode = limits.preempt_mode if mode in ("", "cluster") else mode
    effect = next((word for name, word in _MODES.items() if name in mode.split(",")), "")
    if not others or not effect:
        return ""
    return f"It may be {effect} when Slurm needs its resources for {preemptors}."


def _above(partition: str, limits: Limits) -> list[str]:
    """The partitions of a higher PriorityTier that share a node with this one."""
    tier = entry_of(partition, limits).priority_tier
    sharing = limits.sharing_nodes.get(partition, ())
    return [
        entry.name
        for entry in limits.partitions
        if entry.name != partition and entry.name in sharing and entry.priority_tier > tier
    ]
