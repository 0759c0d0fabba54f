"""Sessions that ended lately without their owner's request: what happened, and what may help."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from portal.core.session.kept import kept
from portal.core.session.session import Cause, Session, State
from portal.core.session.status import shown_limit
from portal.core.units import exact_size

LATELY = timedelta(days=1)
"""How long after an end its owner is told of it above the list."""
_HALF_GB = 512
SHOWN = 4
"""Ends that are shown in full."""


@dataclass(frozen=True)
class EndedLately:
    """An owner's ends that need a notice."""

    sessions: tuple[Session, ...] = ()
    """The newest, newest first; at most SHOWN."""
    count: int = 0
    """The number of all of them."""

    @property
    def more(self) -> int:
        """How many are not shown in full."""
        return self.count - len(self.sessions)


class Notice(StrEnum):
    """What an owner can dismiss."""

    END = "end"
    """The notice that a session has ended."""
    MEMORY = "memory"
    """The notice that a process was killed for want of memory."""


class More(StrEnum):
    """What a session had too little of."""

    TIME = "time"
    MEMORY = "memory"


_HOW = {
    Cause.FINISHED: "ended by itself",
    Cause.CANCELLED: "was ended",
    Cause.TIME_LIMIT: "reached its time limit",
    Cause.OUT_OF_MEMORY: "ran out of memory and ended",
    Cause.NODE_FAILURE: "ended because its compute node failed",
    Cause.PREEMPTED: "was stopped for a job of higher priority",
    Cause.START_FAILED: "did not start",
    Cause.IDLE: "was not used and ended",
    Cause.FAILED: "failed",
}
_EXPLAINED = frozenset({Cause.CANCELLED, Cause.START_FAILED, Cause.FAILED})


def how_it_ended(session: Session) -> str:
    """What happened, for its owner, to follow its name: "reached its time limit"."""
    if session.state is State.ENDING:
        return "is ending"
    if session.cause is Cause.CANCELLED and session.stopped_by == session.owner:
        return "was ended by you"
    return _HOW[session.cause or Cause.FINISHED]


def why_it_ended(session: Session) -> str:
    """The explanation, for causes that do not explain themselves; else ""."""
    by_owner = session.stopped_by == session.owner and session.cause is Cause.CANCELLED
    explained = session.cause in _EXPLAINED and not by_owner
    return (session.end_text or "") if explained else ""


def was_kept(session: Session) -> str:
    """What stayed after the end, by name; "" for a session that never started."""
    if session.started is None or session.ready is None:
        return ""
    found = kept(session)
    if not found.folders:
        return "Its files were deleted."
    *most, last = found.folders
    text = f"{', '.join(most)} and {last} were kept." if most else f"{last} was kept."
    # A folder's name keeps its case; "your home directory" begins a sentence.
    return text[0].upper() + text[1:] if text.startswith("your ") else text


def lacked(session: Session) -> More | None:
    """What would have prevented this end, if the next session gets more of it."""
    if session.cause is Cause.TIME_LIMIT:
        return More.TIME
    return More.MEMORY if session.cause is Cause.OUT_OF_MEMORY else None


def longer(session: Session, most: int | None) -> int | None:
    """Twice its time limit in minutes, within `most`; None if it already had that."""
    limit = shown_limit(session)
    return None if limit is None else _more(limit, 2 * limit, most)


def larger(session: Session, most: int | None) -> int | None:
    """Twice its memory in MiB, in halves of a GB, within `most`; None if it already had that."""
    memory = session.memory_mb
    halves = -(-2 * memory // _HALF_GB) * _HALF_GB
    return _more(memory, halves, most)


def _more(amount: int, wanted: int, most: int | None) -> int | None:
    more = wanted if most is None else min(wanted, most)
    return more if more > amount else None


def memory_kill(session: Session) -> str:
    """What the kernel did for want of memory, without the time; "" if nothing."""
    if not session.oom_kills:
        return ""
    program = session.oom_program or "A process"
    amount = exact_size(session.memory_mb)
    return f"{program} was stopped: it wanted more than the {amount} of this session."


def shows_memory_kill(session: Session) -> bool:
    """Whether its owner has not dismissed the notice of the last kill for want of memory."""
    return session.oom_kills > 0 and session.oom_seen is None
