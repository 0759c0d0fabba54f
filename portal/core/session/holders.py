"""Why a session waits if other sessions of its owner hold what it needs, and which to end."""

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
    """What explains waiting: limits, the cluster's use, and sessions that hold resources."""

    limits: Limits | None = None
    use: ClusterUsage = field(default_factory=ClusterUsage)
    sessions: tuple[Session, ...] = ()
    viewer: str = ""
    """Who reads the explanation; "" for the session's owner."""

    def held_for(self, session: Session, resource: str) -> list[tuple[Session, float]]:
        """The owner's other sessions that hold this resource, and how much of it."""
        amounts_of = [
            (one, float(getattr(one, resource) or 0))
            for one in self.sessions
            if one.owner == session.owner and one.id != session.id and one.state in HOLDING
        ]
        return [(one, amount) for one, amount in amounts_of if amount]

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
    """Slurm's reason in plain words, with the sessions that hold what it waits for."""
    partition = session.partition or ""
    charge = charge_of(session.owner, partition, session.slurm, holdings.limits)
    reason = explain_reason(session.pending_reason, charge=charge)
    found = _short_of_gpu(session, status, holdings) or _at_limit(session, holdings)
    return Reason(reason.code, *found) if found else reason


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
    what = "a GPU" if session.gres.startswith("gpu:") else "a GPU share"
    text = f"It waits for {what}: {used:g} of {format_fgpu(room.fgpu)} are in use"
    held = [
        (one, amount)
        for one, amount in holdings.held_for(session, "fgpu")
        if (one.partition, one.gpu_kind) == (session.partition, session.gpu_kind)
    ]
    if not held:
        return f"{text}.", WAIT
    who = "you" if holdings.is_owner(session) else session.owner
    mine = sum(amount for _, amount in held)
    part = fgpu_number(mine)
    if mine + _EPSILON >= used:
        part = {1: "all", 2: "both"}.get(len(held), "all")
    short = session.fgpu - room.free
    return f"{text}, {part} by {who} ({_names(held)}).", _advice(session, held, short, holdings)


def _at_limit(session: Session, holdings: Holdings) -> tuple[str, str] | None:
    resource = limited_resource(session.pending_reason)
    if not resource:
        return None
    wanted = Tres(session.cpus, session.memory_mb, *of_gres(session.gres))
    reached = blocking_limits(
        session.owner,
        session.partition or "",
        wanted,
        holdings.limits,
        holdings.use,
        session.gpu_kind,
        session.slurm,
    )
    limit = next((one for one in reached if one.resource == resource), None)
    if limit is None:
        return None
    held = [
        (one, amount)
        for one, amount in holdings.held_for(session, resource)
        if limit.group_limit.partitions is None or one.partition in limit.group_limit.partitions
    ]
    names = f" ({_names(held)})" if held else ""
    needs = format_amount(resource, limit.requested)
    text = f"{_used(session, limit, holdings)}{names}, this needs {needs}."
    return text, _advice(session, held, limit.used + limit.requested - limit.bound, holdings)


def _used(session: Session, limit: BlockingLimit, holdings: Holdings) -> str:
    held, bound = amounts(limit.resource, limit.used, limit.bound)
    if limit.group_limit.user is None:
        return f"{_together(limit.group_limit)} uses {held} of its {bound}"
    if not holdings.is_owner(session):
        return f"{session.owner} uses {held} of {bound}"
    return f"You use {held} of your {bound}"


def _together(limit: GroupLimit) -> str:
    """Whose jobs a limit counts together."""
    if limit.accounts and len(limit.accounts) == 1:
        return f"Your account {next(iter(limit.accounts))}"
    return f"QOS {limit.qos}" if limit.qos and not limit.accounts else "Your group"


def _names(held: Sequence[tuple[Session, float]]) -> str:
    names = sorted(one.name for one, _ in held)
    more = len(names) - _MOST_NAMES
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_MOST_NAMES])} and {more} more"


def _advice(
    session: Session,
    held: Iterable[tuple[Session, float]],
    short: float,
    holdings: Holdings,
) -> str:
    """Which of these sessions to end so that this much is free."""
    if not holdings.is_owner(session):
        return ""
    to_end = [(one, amount) for one, amount in held if one.state is not State.ENDING]
    enough = [one.name for one, amount in to_end if amount + _EPSILON >= short]
    purpose = "to make room" if session.ahead else "to start this now"
    if enough and len(enough) == len(to_end) > 1:
        return f"End one {purpose}."
    if enough:
        return f"End {' or '.join(sorted(enough)[:_MOST_NAMES])} {purpose}."
    if sum(amount for _, amount in to_end) + _EPSILON >= short:
        return f"End more than one of them {purpose}."
    return WAIT
