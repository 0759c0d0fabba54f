"""Tokens of services that act for users, such as a JupyterHub."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from portal.core.account_names import AccountNames
from portal.core.auth.accounts import Identity
from portal.core.auth.logins import MAX_NAME
from portal.errors import FieldError

MAX_LISTED = 500
"""Users, or groups, of one token."""
_GROUP = re.compile(r"[!-~][ -~]{0,63}")
"""Names of groups, which may contain blanks."""


@dataclass(frozen=True)
class ServiceToken:
    """A service's token; stored by the hash of its secret."""

    hash: str
    id: str
    """Public identifier; not a secret."""
    name: str
    users: tuple[str, ...]
    """The users that it may act for."""
    groups: tuple[str, ...]
    """Unix groups of the login node, for whose members it may act."""
    created: datetime
    used: datetime | None
    expires: datetime


def refusal(token: ServiceToken, user: str, identity: Identity | None, min_uid: int) -> str:
    """Why the token may not act for a user; "" if it may.

    `identity` is None for an account that does not exist on the login node or cannot log in.
    """
    if identity is None:
        return f"The login node has no account {user} that may log in."
    if identity.uid < min_uid:
        return f"{user} is a system account, for which no service may act."
    if user in token.users or not identity.groups.isdisjoint(token.groups):
        return ""
    return f"The service token {token.name} may not act for {user}."


def problems(
    name: str, users: Collection[str], groups: Collection[str], rule: AccountNames
) -> list[FieldError]:
    """Errors for the fields of a new token."""
    errors = []
    if not (0 < len(name) <= MAX_NAME and name.isprintable() and name.strip() == name):
        text = f"use 1 to {MAX_NAME} printable characters, without spaces at the ends"
        errors.append(FieldError("name", text))
    if not users and not groups:
        errors.append(FieldError("users", "name at least one user or group"))
    for field, names, fits in (
        ("users", users, rule.permits),
        ("groups", groups, _GROUP.fullmatch),
    ):
        if len(names) > MAX_LISTED:
            errors.append(FieldError(field, f"name at most {MAX_LISTED}; a group can have more"))
        if invalid := [principal for principal in names if not fits(principal)]:
            errors.append(FieldError(field, f"{invalid[0]!r} is not an account name"))
    return errors
