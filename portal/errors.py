"""Every error that a person may see.

The tree (the web layer turns each into one HTTP status, in one place):

    PortalError                  500
     ├─ InvalidRequest           422  names each field that is wrong; nothing was changed
     ├─ Unauthorized             401  no identity, or a wrong one
     ├─ NotFound                 404  also what belongs to somebody else
     ├─ Conflict                 409  the thing is not in a state that permits this
     ├─ Gone                     410  the session is over
     └─ Unavailable              503  Slurm, the login node or a compute node does not answer
         ├─ StillOpen            503  the proxy has not shut yet what was taken away
         └─ OutcomeUnknown       503  it was asked, and nobody knows whether it was done
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_ERRORS = 10
"""Wrong fields that one answer names."""
MAX_MESSAGE, MAX_FIELD = 400, 200


def clip(text: str, length: int = 40) -> str:
    """What somebody sent, short enough to be said again."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


@dataclass(frozen=True)
class FieldError:
    """One field of a request and what is wrong with it, in words for its author."""

    field: str
    message: str


class PortalError(Exception):
    """The root; its text may be shown to users."""

    status = 500
    title = "Something went wrong on our side"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class InvalidRequest(PortalError):
    """The request cannot be carried out as written; the wrong fields are named.

    The first ten of them, each in a few words, so that no answer is larger than what was sent;
    `more` says how many others there are.
    """

    status = 422
    title = "Please check what you entered"

    def __init__(self, errors: Sequence[FieldError], text: str = "", more: int = 0) -> None:
        self.errors = tuple(
            FieldError(clip(e.field, MAX_FIELD), clip(e.message, MAX_MESSAGE))
            for e in errors[:MAX_ERRORS]
        )
        self.more = more + len(errors) - len(self.errors)
        said = [f"{e.field}: {e.message}".removeprefix(": ") for e in self.errors]
        if self.more:
            said.append(f"and {self.more} more")
        super().__init__(text or "; ".join(said))

    def also(self, errors: Sequence[FieldError]) -> InvalidRequest:
        """The same with other wrong fields before these."""
        return InvalidRequest([*errors, *self.errors], more=self.more)


class Unauthorized(PortalError):
    """Nobody is logged in, or the name and password do not belong together."""

    status = 401
    title = "Please log in"


class NotFound(PortalError):
    """There is no such thing, or it is not yours: the two look the same on purpose."""

    status = 404
    title = "Not found"


class Conflict(PortalError):
    """The thing exists but is not in a state that permits this."""

    status = 409
    title = "Not possible right now"


class KeyReused(Conflict):
    """The key that makes a launch count once was used for another launch."""


class Gone(PortalError):
    """The session is over."""

    status = 410
    title = "This session is over"


class Unavailable(PortalError):
    """Something we depend on does not answer; trying again later helps."""

    status = 503
    title = "Temporarily not available"


class StillOpen(Unavailable):
    """A way was taken away, and the proxy has not shut it yet: the worker goes on trying."""

    title = "Still open"

    def __init__(self) -> None:
        super().__init__(
            "It is still open: the proxy in front of the apps does not answer. What you asked for "
            "is noted, and it is shut as soon as the proxy answers again."
        )


class OutcomeUnknown(Unavailable):
    """A command was sent and its answer was lost: it may or may not have happened."""
