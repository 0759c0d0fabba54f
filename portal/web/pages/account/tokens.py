"""One page of a user's API tokens, of which there can be hundreds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flask import request

from portal.core.auth.logins import MAX_TOKENS, Login
from portal.web.pages.listing import PAGE


@dataclass(frozen=True)
class TokenPage:
    """The tokens on a page, newest first, and the numbers at which other pages begin."""

    tokens: Sequence[Login]
    newer: int | None
    older: int | None

    @classmethod
    def of_request(cls, tokens: Sequence[Login]) -> TokenPage:
        """The page that the parameter "from" names."""
        text = request.args.get("from", "")
        start = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
        start = min(start, MAX_TOKENS) // PAGE * PAGE
        end = start + PAGE
        return cls(
            tokens[start:end],
            start - PAGE if start else None,
            end if end < len(tokens) else None,
        )
