"""Context of the current thread's work, added to each line of its log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

user: ContextVar[str] = ContextVar("log_user", default="")
"""Account name; "" if unknown."""
session: ContextVar[str] = ContextVar("log_session", default="")
"""Id of the current session."""
request: ContextVar[str] = ContextVar("log_request", default="")
"""Id of the request, from HAProxy."""

_FIELDS = {"user": user, "session": session, "request": request}


def fields() -> dict[str, str]:
    """The non-empty fields by their names in the log."""
    return {name: value for name, variable in _FIELDS.items() if (value := variable.get())}


def begin(request_id: str, session_id: str = "") -> None:
    """Start a request: replaces the context of the thread's previous request."""
    user.set("")
    session.set(session_id)
    request.set(request_id)


@contextmanager
def about(*, owner: str = "", session_id: str = "") -> Iterator[None]:
    """Set user and session for the lines logged inside."""
    tokens = user.set(owner), session.set(session_id)
    try:
        yield
    finally:
        user.reset(tokens[0])
        session.reset(tokens[1])
