"""Whether work runs in a thread of its own, or in one that answers requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_own_thread: ContextVar[bool] = ContextVar("own_thread", default=False)


@contextmanager
def own_thread() -> Iterator[None]:
    """Work inside occupies no thread of the web application."""
    token = _own_thread.set(True)
    try:
        yield
    finally:
        _own_thread.reset(token)


def in_own_thread() -> bool:
    """Whether the caller occupies no thread of the web application."""
    return _own_thread.get()
