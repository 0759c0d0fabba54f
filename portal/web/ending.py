"""Whose time is nearly up: the warning above the list."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Flask

from portal.core.session import Session
from portal.core.view import ENDS_SOON, ends_soon
from portal.web.context import person, services


@dataclass(frozen=True)
class Ending:
    """One's own session that ends soon, and how many minutes more it could get."""

    session: Session
    more: int


def ending_sessions() -> list[Ending]:
    """Of whoever asks, the next one first."""
    sessions, before = services().sessions, services().clock() + ENDS_SOON
    found = sessions.store.ending(person().name, before)
    return [Ending(session, sessions.extension(session)) for session in found]


def is_ending(session: Session) -> bool:
    """Whether to warn about this session."""
    return ends_soon(session, services().clock())


def install(app: Flask) -> None:
    """Give the templates these words."""
    app.jinja_env.globals.update(ending_sessions=ending_sessions, is_ending=is_ending)
