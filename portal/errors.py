"""All errors that users may see.

The tree (the web layer maps each to an HTTP status, in one place):

    PortalError                  500
     ├─ InvalidRequest           422  names each wrong field; nothing was changed
     │   ├─ NodesUnknown         422  Slurm has no such node, or none yet after its restart
     │   └─ GresUnknown          422  Slurm has no such GPUs, or none yet after its restart
     ├─ Unauthorized             401  no credentials, or invalid ones
     ├─ Forbidden                403  valid credentials that do not permit this
     ├─ NotFound                 404  also for resources of other users
     │   └─ SessionUnknown       404  a runner calls for a session that this portal does not know
     ├─ Conflict                 409  the resource is not in a state that permits this
     │   ├─ FolderShared         409  others have access to a storage folder to be deleted
     │   └─ HomeUnusable         409  the user's home is missing, full, or not writable
     ├─ Gone                     410  the session is over
     ├─ DatabaseUnavailable      503  the portal's database does not answer
     │   └─ DatabaseFull         507  the database can be read, but not written
     ├─ TooMany                  429  the user's concurrency limit is reached
     │   └─ TooManyLogins        429  too many wrong passwords, or log-ins
     └─ Unavailable              503  Slurm, the login node or a compute node does not answer
         ├─ UnderMaintenance     503  launches are refused until an unknown time
         ├─ StillOpen            503  the proxy has not closed revoked access yet
         ├─ Starting             503  a server is being started; retry soon
         ├─ PasswordNotTried     425  this process checks enough others; HAProxy asks another one
         └─ OutcomeUnknown       503  the command was sent, but its result is unknown
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_ERRORS = 10
"""Wrong fields in one response."""
MAX_MESSAGE, MAX_FIELD = 400, 200


def clip(text: str, length: int = 40) -> str:
    """Shorten input that is repeated in a message."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def visible(text: str) -> str:
    """Replace line breaks and control characters in a text from users."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


@dataclass(frozen=True)
class FieldError:
    """A wrong field of a request, with a message for its author."""

    field: str
    message: str


class PortalError(Exception):
    """Base class; its text may be shown to users."""

    status = 500
    title = "Something went wrong on our side"
    code = ""
    """A machine-readable error code; "" if the status suffices."""
    field = ""
    """The wrong part of the request; "" if none."""
    retry_seconds = 15
    """Value of Retry-After (429 and 503)."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class InvalidRequest(PortalError):
    """The request is invalid; the wrong fields are named.

    Only the first ten, with short messages, so that no response is larger than its request;
    `more` is the number of omitted ones.
    """

    status = 422
    title = "Please check what you entered"

    def __init__(self, errors: Sequence[FieldError], text: str = "", more: int = 0) -> None:
        self.errors = tuple(
            FieldError(clip(e.field, MAX_FIELD), clip(e.message, MAX_MESSAGE))
            for e in errors[:MAX_ERRORS]
        )
        self.more = more + len(errors) - len(self.errors)
        parts = [f"{e.field}: {e.message}".removeprefix(": ") for e in self.errors]
        if self.more:
            parts.append(f"and {self.more} more")
        super().__init__(text or "; ".join(parts))

    def also(self, errors: Sequence[FieldError]) -> InvalidRequest:
        """This error with further wrong fields before the present ones."""
        return InvalidRequest([*errors, *self.errors], more=self.more)


class NodesUnknown(InvalidRequest):
    """Slurm has no such node: never, or none has registered yet after its restart."""


class GresUnknown(InvalidRequest):
    """Slurm has no such GPUs: never, or none are registered yet after its restart."""


class Unauthorized(PortalError):
    """Not logged in, or wrong name or password."""

    status = 401
    title = "Please log in"


class Forbidden(PortalError):
    """The credentials are valid, but do not permit this request."""

    status = 403
    title = "Not permitted"


class NotFound(PortalError):
    """Does not exist, or belongs to another user: deliberately indistinguishable."""

    status = 404
    title = "Not found"


class SessionUnknown(NotFound):
    """The portal does not know this runner's session, which may be lost rather than ended."""

    title = "This session is not known"
    code = "session_unknown"

    def __init__(self) -> None:
        super().__init__("The portal does not know this session.")


class Conflict(PortalError):
    """The resource exists but is not in a state that permits this."""

    status = 409
    title = "Not possible right now"


class FolderShared(Conflict):
    """Others have access to storage folders that would be moved or deleted."""

    code = "shared"

    def __init__(self, text: str, folders: Sequence[str]) -> None:
        super().__init__(text)
        self.folders = tuple(folders)
        """Their names."""


class HomeUnusable(Conflict):
    """The user's home directory does not exist, is full, or cannot be entered or written to."""

    title = "Your home directory cannot be used"
    code = "home_unusable"


class KeyReused(Conflict):
    """The Idempotency-Key was used for a different launch."""


class Gone(PortalError):
    """The session is over."""

    status = 410
    title = "This session is over"
    code = "session_ended"


class TooMany(PortalError):
    """The user's concurrency limit for this kind of requests is reached; retrying helps."""

    status = 429
    title = "Too many at once"


class TooManyLogins(TooMany):
    """Too many wrong passwords were sent, or an account logs in too often."""

    title = "Too many attempts"

    def __init__(self, text: str, seconds: int) -> None:
        minutes = -(-seconds // 60)
        wait = f"{minutes} minutes" if minutes > 1 else f"{seconds} second" + "s" * (seconds != 1)
        super().__init__(f"{text} Wait {wait}, then try again.")
        self.retry_seconds = seconds


class DatabaseUnavailable(PortalError):
    """The portal's database does not answer; other systems raise Unavailable."""

    status = 503
    title = "Temporarily not available"

    def __init__(self, text: str = "") -> None:
        super().__init__(
            text
            or "The portal's database does not answer. Running sessions and open apps are not "
            "affected. Try again in a minute; the administrators can see the cause in the log."
        )


class DatabaseFull(DatabaseUnavailable):
    """The portal's database can be read, but not written."""

    status = 507
    title = "Nothing can be stored"

    def __init__(self) -> None:
        super().__init__(
            "The portal's disk is full, or its database can only be read, so this could not be "
            "stored. What is stored already is kept, and running sessions and open apps go on. "
            "Tell the administrators, and try again once they have made room."
        )


class Unavailable(PortalError):
    """An external system does not answer; retrying later may help."""

    status = 503
    title = "Temporarily not available"


class Starting(Unavailable):
    """The server for such requests is being started; only the request that starts it waits."""

    title = "One moment"
    code = "starting"
    retry_seconds = 1


class StillOpen(Unavailable):
    """Access was revoked, but the proxy has not closed it yet; the worker keeps retrying."""

    title = "Still open"

    def __init__(self) -> None:
        super().__init__(
            "It is still open: the proxy in front of the apps does not answer. Your request is "
            "stored, and access is closed as soon as the proxy answers again."
        )


class PasswordNotTried(Unavailable):
    """No thread of this process is free to check a password, which was not sent to anybody.

    HAProxy asks another process, which it can for few statuses only, and shows the last one's
    answer as 503 (templates/haproxy/portal.cfg.j2).
    """

    status = 425

    def __init__(self) -> None:
        super().__init__("Too many people log in at once. Try again in a few seconds.")


class OutcomeUnknown(Unavailable):
    """A command was sent and its answer was lost: it may or may not have taken effect."""
