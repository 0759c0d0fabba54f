"""Whether code runs in a background thread, or in one of gunicorn's, which answer requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_background_thread: ContextVar[bool] = ContextVar("background_thread", default=False)


@contextmanager
def background_thread() -> Iterator[None]:
    """Mark the code inside as running in a background thread."""
    token = _background_thread.set(True)
    try:
        yield
    finally:
        _background_thread.reset(token)


def in_background_thread() -> bool:
    """Whether the caller runs in a background thread."""
    return _background_thread.get()
