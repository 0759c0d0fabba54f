"""One page of a user's API tokens, of which there can be hundreds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flask import redirect, request
from flask.typing import ResponseReturnValue

from portal.core.auth.logins import Login
from portal.web.pages.listing import PAGE


@dataclass(frozen=True)
class TokenPage:
    """The tokens on a page, newest first, and the numbers at which other pages begin."""

    tokens: Sequence[Login]
    """Empty only if there are none at all."""
    start: int
    newer: int | None
    older: int | None

    @classmethod
    def of_request(cls, tokens: Sequence[Login]) -> TokenPage:
        """The page that the parameter "from" names, at most the last one."""
        start = min(_start(request.args), max(len(tokens) - 1, 0)) // PAGE * PAGE
        end = start + PAGE
        return cls(
            tokens[start:end],
            start,
            start - PAGE if start else None,
            end if end < len(tokens) else None,
        )


def back_to_page(path: str) -> ResponseReturnValue:
    """Redirect to the page of tokens that a form was sent from."""
    start = _start(request.form)
    return redirect(f"{path}?from={start}" if start else path, 303)


def _start(values: Mapping[str, str]) -> int:
    text = values.get("from", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
