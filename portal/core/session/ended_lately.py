"""Recent ends of sessions that their owner did not request: causes and remedies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from portal.core.session.retention import retention
from portal.core.session.session import Cause, Session, State
from portal.core.session.status import shown_limit
from portal.core.units import exact_size

LATELY = timedelta(days=1)
"""How long after an end its notice is shown above the list."""
_HALF_GB = 512
SHOWN = 4
"""Number of ends that are shown in full."""


@dataclass(frozen=True)
class EndedLately:
    """The ends of an owner's sessions that need a notice."""

    sessions: tuple[Session, ...] = ()
    """The newest, newest first; at most SHOWN."""
    count: int = 0
    """Their total number."""

    @property
    def hidden(self) -> int:
        """The number of ends that are not shown in full."""
        return self.count - len(self.sessions)


class Notice(StrEnum):
    """Kinds of notices that an owner can dismiss."""

    END = "end"
    """The notice that a session has ended."""
    MEMORY = "memory"
    """The notice that a process was killed by the kernel for lack of memory."""


class Shortage(StrEnum):
    """A resource whose shortage ended a session."""

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
    """The predicate of a sentence about the session's end: "reached its time limit"."""
    if session.state is State.ENDING:
        return "is ending"
    if session.cause is Cause.CANCELLED and session.stopped_by == session.owner:
        return "was ended by you"
    return _HOW[session.cause or Cause.FINISHED]


def why_it_ended(session: Session) -> str:
    """The explanation of causes that need one; else ""."""
    by_owner = session.stopped_by == session.owner and session.cause is Cause.CANCELLED
    explained = session.cause in _EXPLAINED and not by_owner
    return (session.end_text or "") if explained else ""


def kept_text(session: Session) -> str:
    """Names of the folders that were kept; "" for a session that never started."""
    if session.started is None or session.ready is None:
        return ""
    files = retention(session)
    if not files.folders:
        return "Its files were deleted."
    *others, last = files.folders
    text = f"{', '.join(others)} and {last} were kept." if others else f"{last} was kept."
    # A folder's name keeps its case; "your home directory" begins a sentence.
    return text[0].upper() + text[1:] if text.startswith("your ") else text


def shortage(session: Session) -> Shortage | None:
    """The resource of which the next session needs more to avoid this end."""
    if session.cause is Cause.TIME_LIMIT:
        return Shortage.TIME
    return Shortage.MEMORY if session.cause is Cause.OUT_OF_MEMORY else None


def longer(session: Session, most: int | None) -> int | None:
    """Twice its time limit in minutes, at most `most`; None if that is not an increase."""
    limit = shown_limit(session)
    return None if limit is None else _increased(limit, 2 * limit, most)


def larger(session: Session, most: int | None) -> int | None:
    """Twice its memory in MiB, in steps of 0.5 GB, at most `most`; None if that is no increase."""
    memory = session.memory_mb
    halves = -(-2 * memory // _HALF_GB) * _HALF_GB
    return _increased(memory, halves, most)


def _increased(amount: int, proposed: int, most: int | None) -> int | None:
    bounded = proposed if most is None else min(proposed, most)
    return bounded if bounded > amount else None


def memory_kill(session: Session) -> str:
    """Describe the kernel's last out-of-memory kill, without its time; "" if none."""
    if not session.oom_kills:
        return ""
    program = session.oom_program or "A process"
    amount = exact_size(session.memory_mb)
    return f"{program} was stopped: it wanted more than the {amount} of this session."


def shows_memory_kill(session: Session) -> bool:
    """Whether the notice of the last out-of-memory kill has not been dismissed."""
    return session.oom_kills > 0 and session.oom_seen is None
