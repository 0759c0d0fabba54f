"""What the current thread works on, for every line that it logs meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

user: ContextVar[str] = ContextVar("log_user", default="")
"""Account name; "" if nobody is known."""
session: ContextVar[str] = ContextVar("log_session", default="")
"""Id of the session that is worked on."""
request: ContextVar[str] = ContextVar("log_request", default="")
"""Id of the request, from HAProxy."""

_FIELDS = {"user": user, "session": session, "request": request}


def fields() -> dict[str, str]:
    """What is known, by the names that lines use."""
    return {name: value for name, known in _FIELDS.items() if (value := known.get())}


def begin(request_id: str, session_id: str = "") -> None:
    """Start a request: threads are reused, so that nothing of the one before may remain."""
    user.set("")
    session.set(session_id)
    request.set(request_id)


@contextmanager
def about(*, owner: str = "", session_id: str = "") -> Iterator[None]:
    """Lines inside are about this user and session."""
    tokens = user.set(owner), session.set(session_id)
    try:
        yield
    finally:
        user.reset(tokens[0])
        session.reset(tokens[1])
