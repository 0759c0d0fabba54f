"""Extensions of a session's time limit."""

from __future__ import annotations

from dataclasses import dataclass

from portal.core.units import short_minutes

LONGEST = "max"
"""The value, instead of minutes, that requests the longest extension that limits permit."""
STEPS = (60, 240)
"""The extensions that are offered, in minutes."""


@dataclass(frozen=True)
class Extension:
    """One extension that is offered; `value` is sent to request it."""

    value: str
    minutes: int
    title: str


@dataclass(frozen=True)
class Extensions:
    """The extensions that are possible, or why there are none."""

    offers: tuple[Extension, ...] = ()
    why: str = ""


def extensions(room: int | None, limit: str) -> Extensions:
    """The extensions to offer with `room` minutes left to the limit; None: unlimited.

    `limit` names the limit in words, for a session that has reached it.
    """
    if room is not None and room < 1:
        return Extensions(why=f"It cannot be extended: {limit}.")
    fitting = [step for step in STEPS if room is None or step < room]
    offers = [Extension(str(step), step, short_minutes(step)) for step in fitting]
    if room is not None:
        title = f"as long as possible ({short_minutes(room)})"
        offers.append(Extension(LONGEST, room, title))
    return Extensions(tuple(offers))
