"""Texts that an owner enters when opening an app: the answer to its prompt, and a title."""

from __future__ import annotations

from collections.abc import Iterator

from portal.core.apps.access import AppOptions, OpenApp
from portal.core.apps.catalog import AppSpec
from portal.errors import FieldError

MAX_ANSWER = 500
"""Characters of an owner's answer to an app's prompt."""
MAX_TITLE = 60
"""Characters of the title that an owner gives an app."""


def check_words(
    spec: AppSpec, options: AppOptions, stored: OpenApp | None = None
) -> Iterator[FieldError]:
    """Yield errors for an owner's answer and title; `stored`: the app in the database."""
    answer = options.asked if options.asked is not None else stored.asked if stored else ""
    if spec.must_answer and not answer.strip():
        yield FieldError("asked", f"{spec.title} cannot start without this")
    elif options.asked and not spec.asks:
        yield FieldError("asked", f"{spec.title} has no prompt to answer")
    elif options.asked and not _is_line(options.asked, MAX_ANSWER):
        yield FieldError("asked", f"write one line of at most {MAX_ANSWER} characters")
    if options.title and not spec.own_title:
        yield FieldError("title", f"{spec.title} cannot have another title")
    elif options.title and not _is_line(options.title, MAX_TITLE):
        yield FieldError("title", f"write one line of at most {MAX_TITLE} characters")


def _is_line(text: str, most: int) -> bool:
    return len(text) <= most and text.isprintable()
