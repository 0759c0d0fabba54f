"""Why a session waits for resources held by its owner's other sessions, and which to end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from portal.core.cluster.choice.charge import charge_of
from portal.core.cluster.limits import GroupLimit, Limits, Tres
from portal.core.cluster.usage import (
    BlockingLimit,
    ClusterUsage,
    SlurmStatus,
    blocking_limits,
    capacity_of,
)
from portal.core.session.pending_reasons import (
    WAIT,
    Reason,
    explain_reason,
    limited_resource,
    names_a_charge,
)
from portal.core.session.session import Session, State
from portal.core.units import amounts, fgpu_number, format_amount, format_fgpu
from portal.node.common.fgpu import of_gres, to_number

HOLDING = frozenset({State.STARTING, State.RUNNING, State.ENDING})
"""States of sessions that hold their resources."""
_FOR_ROOM = frozenset({"Resources", "Priority"})
"""Slurm's reasons that may mean that no GPU is free."""
_MOST_NAMES = 4
_EPSILON = 0.001


@dataclass(frozen=True)
class Holdings:
    """Data that explains waiting: limits, the cluster's use, and sessions that hold resources."""

    limits: Limits | None = None
    use: ClusterUsage = field(default_factory=ClusterUsage)
    sessions: tuple[Session, ...] = ()
    viewer: str = ""
    """The user who reads the explanation; "" for the session's owner."""

    def held_for(self, session: Session, resource: str) -> list[tuple[Session, float]]:
        """The owner's other sessions that hold this resource, with their amounts."""
        holders = [
            (other, float(getattr(other, resource) or 0))
            for other in self.sessions
            if other.owner == session.owner and other.id != session.id and other.state in HOLDING
        ]
        return [(other, amount) for other, amount in holders if amount]

    def is_owner(self, session: Session) -> bool:
        """Whether the reader owns the session."""
        return self.viewer in ("", session.owner)


NOTHING = Holdings()


def needs_holders(session: Session) -> bool:
    """Whether limits, or other sessions of its owner, may explain why it waits."""
    code = _code(session)
    if session.state is not State.PENDING:
        return False
    short_of_gpu = session.fgpu is not None and code in _FOR_ROOM
    return short_of_gpu or bool(limited_resource(code)) or names_a_charge(code)


def explain_waiting(session: Session, status: SlurmStatus, holdings: Holdings) -> Reason:
    """Explain Slurm's reason, with the sessions that hold the resources it waits for."""
    partition = session.partition or ""
    charge = charge_of(session.owner, partition, session.slurm, holdings.limits)
    reason = explain_reason(session.pending_reason, charge=charge)
    explanation = _short_of_gpu(session, status, holdings) or _at_limit(session, holdings)
    return Reason(reason.code, *explanation) if explanation else reason


def _code(session: Session) -> str:
    return (session.pending_reason or "").split(",")[0].strip()


def _short_of_gpu(
    session: Session, status: SlurmStatus, holdings: Holdings
) -> tuple[str, str] | None:
    room = capacity_of(status.rooms, session.partition or "", session.gpu_kind)
    if session.fgpu is None or room is None or _code(session) not in _FOR_ROOM:
        return None
    used = to_number(room.fgpu - room.free)
    if room.free + _EPSILON > session.fgpu or not used:
        return None
    resource = "a GPU" if session.gres.startswith("gpu:") else "a GPU share"
    text = f"It waits for {resource}: {used:g} of {format_fgpu(room.fgpu)} are in use"
    holders = [
        (holder, amount)
        for holder, amount in holdings.held_for(session, "fgpu")
        if (holder.partition, holder.gpu_kind) == (session.partition, session.gpu_kind)
    ]
    if not holders:
        return f"{text}.", WAIT
    user = "you" if holdings.is_owner(session) else session.owner
    amount_held = sum(amount for _, amount in holders)
    part = fgpu_number(amount_held)
    if amount_held + _EPSILON >= used:
        part = {1: "all", 2: "both"}.get(len(holders), "all")
    short = session.fgpu - room.free
    return f"{text}, {part} by {user} ({_names(holders)}).", _advice(
        session, holders, short, holdings
    )


def _at_limit(session: Session, holdings: Holdings) -> tuple[str, str] | None:
    resource = limited_resource(session.pending_reason)
    if not resource:
        return None
    requested = Tres(session.cpus, session.memory_mb, *of_gres(session.gres))
    reached = blocking_limits(
        session.owner,
        session.partition or "",
        requested,
        holdings.limits,
        holdings.use,
        session.gpu_kind,
        session.slurm,
    )
    limit = next((candidate for candidate in reached if candidate.resource == resource), None)
    if limit is None:
        return None
    holders = [
        (holder, amount)
        for holder, amount in holdings.held_for(session, resource)
        if limit.group_limit.partitions is None or holder.partition in limit.group_limit.partitions
    ]
    names = f" ({_names(holders)})" if holders else ""
    needs = format_amount(resource, limit.requested)
    text = f"{_used(session, limit, holdings)}{names}, this needs {needs}."
    return text, _advice(session, holders, limit.used + limit.requested - limit.bound, holdings)


def _used(session: Session, limit: BlockingLimit, holdings: Holdings) -> str:
    used, bound = amounts(limit.resource, limit.used, limit.bound)
    if limit.group_limit.user is None:
        return f"{_together(limit.group_limit)} uses {used} of its {bound}"
    if not holdings.is_owner(session):
        return f"{session.owner} uses {used} of {bound}"
    return f"You use {used} of your {bound}"


def _together(limit: GroupLimit) -> str:
    """The group of users to which a limit applies."""
    if limit.accounts and len(limit.accounts) == 1:
        return f"Your account {next(iter(limit.accounts))}"
    return f"QOS {limit.qos}" if limit.qos and not limit.accounts else "Your group"


def _names(held: Sequence[tuple[Session, float]]) -> str:
    names = sorted(session.name for session, _ in held)
    others = len(names) - _MOST_NAMES
    return (
        ", ".join(names) if others <= 0 else f"{', '.join(names[:_MOST_NAMES])} and {others} more"
    )


def _advice(
    session: Session,
    held: Iterable[tuple[Session, float]],
    short: float,
    holdings: Holdings,
) -> str:
    """Which of these sessions to end so that `short` is free."""
    if not holdings.is_owner(session):
        return ""
    to_end = [(holder, amount) for holder, amount in held if holder.state is not State.ENDING]
    enough = [holder.name for holder, amount in to_end if amount + _EPSILON >= short]
    purpose = "to make room" if session.ahead else "to start this now"
    if enough and len(enough) == len(to_end) > 1:
        return f"End one {purpose}."
    if enough:
        return f"End {' or '.join(sorted(enough)[:_MOST_NAMES])} {purpose}."
    if sum(amount for _, amount in to_end) + _EPSILON >= short:
        return f"End more than one of them {purpose}."
    return WAIT
