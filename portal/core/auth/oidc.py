"""Login by OpenID Connect: account and administrator status from verified claims."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from portal.errors import Forbidden, Unauthorized, clip

MAX_CLAIM = 256
"""Characters of the claim with the account."""
MAX_GROUPS = 5000
ATTEMPT_SECONDS = 600
"""Time limit for the login at the provider."""

Claims = Mapping[str, Any]


@dataclass(frozen=True)
class LoginAttempt:
    """State of a login in the browser's signed cookie, until the provider redirects back."""

    state: str
    nonce: str
    verifier: str
    """PKCE's code verifier."""
    target: str
    """Path to show afterwards; "" for the start page."""
    started: int
    """Seconds since 1970."""


@dataclass(frozen=True)
class AuthorizationResponse:
    """Parameters of the provider's redirect."""

    state: str = ""
    code: str = ""
    issuer: str = ""
    """RFC 9207's `iss`."""
    error: str = ""


@dataclass(frozen=True)
class ProviderAnswer:
    """The verified claims of the ID token, and the token itself."""

    claims: Claims
    id_token: str


@dataclass(frozen=True)
class LogoutNotice:
    """A verified logout token (OpenID Connect Back-Channel Logout 1.0)."""

    id: str
    subject: str
    session: str


@dataclass(frozen=True)
class AccountRule:
    """Mapping of verified claims to an account of the cluster."""

    claim: str
    pattern: str = ""
    """Regular expression with one group, the account; "": the claim is the account."""
    verified_email: bool = True
    groups_claim: str = ""
    allowed_groups: frozenset[str] = frozenset()
    admin_groups: frozenset[str] = frozenset()

    @property
    def needed(self) -> tuple[str, ...]:
        """The claims that it reads."""
        return tuple(name for name in (self.claim, self.groups_claim) if name)


ERRORS: Mapping[str, str] = MappingProxyType(
    {
        "access_denied": "You cancelled, or {title} does not let you use this portal.",
        "login_required": "{title} wants you to log in there again. Please try again.",
        "interaction_required": "{title} needs an answer of yours. Please try again.",
        "account_selection_required": "Choose an account at {title}. Please try again.",
        "consent_required": "{title} needs your consent to tell the portal who you are.",
        "temporarily_unavailable": "{title} is overloaded or being maintained. Try again later.",
        "server_error": "{title} has a problem of its own. Try again later.",
    }
)
"""The provider's errors (RFC 6749, OpenID Connect), in words."""
_MISCONFIGURED = (
    "{title} refuses the portal ({error}). Its administrators must look at its registration."
)


def error_text(error: str, title: str) -> str:
    """A provider's error in plain words."""
    code = error if re.fullmatch(r"[a-z_]{1,60}", error) else "unknown error"
    return ERRORS.get(code, _MISCONFIGURED).format(title=title, error=code)


def claim_of(claims: Claims, name: str) -> Any:
    """A claim by its name, or by its path with dots; None if there is none."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def account_of(claims: Claims, rule: AccountRule, accounts: Mapping[str, str] | None) -> str:
    """The account that belongs to the claims; it need not exist.

    `accounts`: accounts by claim, if a file maps them. Raises Unauthorized if there is none.
    """
    value = claim_of(claims, rule.claim)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_CLAIM or not value.isprintable():
        raise Unauthorized(f"The log-in does not tell your account: “{rule.claim}” is missing.")
    if rule.claim == "email" and rule.verified_email:
        _require_verified(claims)
    if accounts is not None:
        if value not in accounts:
            raise Unauthorized(f"No account on the cluster belongs to “{clip(value, 80)}”.")
        return accounts[value]
    if not rule.pattern:
        return value
    match = re.fullmatch(rule.pattern, value)
    if match is None or not match[1]:
        raise Unauthorized(f"No account on the cluster belongs to “{clip(value, 80)}”.")
    return match[1]


def _require_verified(claims: Claims) -> None:
    # Some providers send booleans as strings.
    if claims.get("email_verified") not in (True, "true"):
        raise Unauthorized("Your e-mail address is not verified at the provider.")


def groups_of(claims: Claims, rule: AccountRule) -> frozenset[str]:
    """The user's groups; empty if the provider names none."""
    value = claim_of(claims, rule.groups_claim) if rule.groups_claim else None
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return frozenset()
    return frozenset(group for group in value[:MAX_GROUPS] if isinstance(group, str))


def is_admin(claims: Claims, rule: AccountRule) -> bool:
    """Whether the user's groups include administrators; raises Forbidden if login is denied."""
    groups = groups_of(claims, rule)
    if rule.allowed_groups and groups.isdisjoint(rule.allowed_groups | rule.admin_groups):
        raise Forbidden("You are in none of the groups that may use this portal.")
    return not groups.isdisjoint(rule.admin_groups)


def read_accounts(text: str) -> dict[str, str]:
    """Parse a file with lines `CLAIM ACCOUNT` to accounts by claim; raises ValueError.

    "#" begins a comment, at the start of a line or after a blank.
    """
    accounts: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"(^|\s)#.*", "", line).split()
        if not words:
            continue
        if len(words) != 2:
            raise ValueError(f"line {number}: write a claim and an account")
        if words[0] in accounts:
            raise ValueError(f"line {number}: {words[0]} is there twice")
        accounts[words[0]] = words[1]
    return accounts
