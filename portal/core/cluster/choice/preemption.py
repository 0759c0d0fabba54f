"""Whether a session can be ended or stopped for the sake of others' jobs."""

from __future__ import annotations

from portal.core.cluster.choice.access import entry_of
from portal.core.cluster.limits import Limits

# Sessions are submitted with --no-requeue, so Slurm cancels what it would requeue.
_MODES = {
    "cancel": "ended",
    "requeue": "ended",
    "suspend": "paused",
    "gang": "paused from time to time",
}


def preemption(partition: str, qos: str, limits: Limits) -> str:
    """What may happen to a session for others' jobs, in one sentence; "" if nothing can."""
    if limits.preempt_type == "qos":
        others = [one.name for one in limits.qos if qos and qos in one.preempt]
        mode = next((one.preempt_mode for one in limits.qos if one.name == qos), "")
        who = "jobs with QOS " + ", ".join(others)
    elif limits.preempt_type == "partition_prio":
        others = _above(partition, limits)
        mode = entry_of(partition, limits).preempt_mode
        who = "jobs in " + ", ".join(others)
    else:
        return ""
    mode = limits.preempt_mode if mode in ("", "cluster") else mode
    found = next((word for name, word in _MODES.items() if name in mode.split(",")), "")
    if not others or not found:
        return ""
    return f"It may be {found} when Slurm needs its resources for {who}."


def _above(partition: str, limits: Limits) -> list[str]:
    """The partitions of a higher PriorityTier that share a node with this one."""
    tier = entry_of(partition, limits).priority_tier
    own = {one.node for one in limits.features if one.partition == partition}
    sharing = {one.partition for one in limits.features if one.node in own}
    return [
        one.name
        for one in limits.partitions
        if one.name != partition and one.name in sharing and one.priority_tier > tier
    ]
