"""[oidc]: login by OpenID Connect, beside the password or instead of it."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, field_validator, model_validator

from portal.config.base import FROZEN
from portal.core.auth.oidc import AccountRule

_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1|.+\.localhost")


class OidcSettings(BaseModel):
    """The OpenID provider, and the mapping of its users to accounts of the cluster."""

    model_config = FROZEN

    issuer: str = Field(
        "",
        max_length=500,
        description="Issuer of the OpenID provider, exactly as it calls itself, such as "
        "https://login.example.org/realms/staff; empty: no log-in by OpenID Connect.",
    )
    client_id: str = Field(
        "", max_length=255, description="Identifier of the portal at the provider."
    )
    client_secret_file: str = Field(
        "",
        description="File with the portal's secret at the provider, readable by the portal's "
        "account only; empty: a public client, which has none.",
    )
    ca_file: str = Field(
        "",
        description="PEM file of the authority of the provider's certificate; empty: those of "
        "this machine.",
    )
    title: str = Field(
        "University login", min_length=1, max_length=60, description="Name of this log-in on pages."
    )
    scopes: tuple[str, ...] = Field(
        ("openid", "profile", "email"), max_length=20, description="Scopes that are asked for."
    )
    claim: str = Field(
        "preferred_username",
        min_length=1,
        max_length=200,
        description="Claim that tells the account on the cluster. Its value must be one that "
        "users cannot choose or change themselves.",
    )
    pattern: str = Field(
        "",
        max_length=500,
        description="Regular expression that the whole claim must match; its only group is the "
        r"account's name, such as '([a-z]+)@example\.org'; empty: the claim is the name.",
    )
    accounts_file: str = Field(
        "",
        description="File with lines `CLAIM ACCOUNT`, for accounts that cannot be told from the "
        "claim by a rule; whoever is not in it cannot log in.",
    )
    require_verified_email: bool = Field(
        True,
        description='With claim = "email": only addresses that the provider calls verified.',
    )
    groups_claim: str = Field(
        "",
        max_length=200,
        description="Claim with a user's groups or roles, such as groups or realm_access.roles.",
    )
    allowed_groups: tuple[str, ...] = Field(
        (),
        max_length=500,
        description="Groups whose members may log in; empty: everybody with an account.",
    )
    admin_groups: tuple[str, ...] = Field(
        (),
        max_length=100,
        description="Groups whose members are administrators, besides slurm.admins.",
    )
    password: bool = Field(
        True, description="Whether users may also log in with the login node's password."
    )
    logout: bool = Field(
        True, description="Whether logging out of the portal also logs out at the provider."
    )
    prompt: Literal["", "login", "consent", "select_account"] = Field(
        "", description="What the provider is to ask, although the user is logged in there."
    )
    max_age: int = Field(
        0,
        ge=0,
        description="Most seconds since the user last entered their credentials at the "
        "provider; 0: any time.",
    )
    clock_skew: int = Field(
        60, ge=0, le=600, description="Seconds that the provider's clock may be off."
    )

    @property
    def enabled(self) -> bool:
        """Whether there is an OpenID provider."""
        return bool(self.issuer)

    @property
    def passwords(self) -> bool:
        """Whether the login node's passwords are accepted."""
        return self.password or not self.enabled

    @property
    def admin_issuer(self) -> str:
        """The issuer whose groups make administrators; "" if none do."""
        return self.issuer if self.admin_groups else ""

    @property
    def rule(self) -> AccountRule:
        """The mapping of claims to accounts."""
        return AccountRule(
            claim=self.claim,
            pattern=self.pattern,
            verified_email=self.require_verified_email,
            groups_claim=self.groups_claim,
            allowed_groups=frozenset(self.allowed_groups),
            admin_groups=frozenset(self.admin_groups),
        )

    @field_validator("issuer")
    @classmethod
    def _is_issuer(cls, issuer: str) -> str:
        if not issuer:
            return issuer
        parts = urlsplit(issuer)
        near = parts.scheme == "http" and _LOOPBACK.fullmatch(parts.hostname or "")
        if not (parts.scheme == "https" and parts.hostname) and not near:
            raise ValueError(f'must begin with https:// and a host name, not "{issuer}"')
        if parts.query or parts.fragment or not issuer.isascii() or not issuer.isprintable():
            raise ValueError("an issuer has no query and no fragment")
        return issuer

    @field_validator("scopes")
    @classmethod
    def _has_openid(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in scopes:
            raise ValueError('must contain "openid"')
        if invalid := [scope for scope in scopes if not re.fullmatch(r"[!#-\[\]-~]+", scope)]:
            raise ValueError(f"{invalid[0]!r} is not a scope")
        return scopes

    @field_validator("pattern")
    @classmethod
    def _has_one_group(cls, pattern: str) -> str:
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise ValueError(f"is not a regular expression: {error}") from None
        if pattern and groups != 1:
            text = "must have exactly one group ( ), the account's name; (?: ) is not counted"
            raise ValueError(text)
        return pattern

    @model_validator(mode="after")
    def _belong_together(self) -> OidcSettings:
        if self.enabled and not self.client_id:
            raise ValueError("client_id is missing: the provider's identifier of the portal")
        if not self.password and not self.enabled:
            raise ValueError("password = false needs issuer: nobody could log in")
        if self.pattern and self.accounts_file:
            raise ValueError("pattern and accounts_file exclude each other")
        if (self.allowed_groups or self.admin_groups) and not self.groups_claim:
            raise ValueError("allowed_groups and admin_groups need groups_claim")
        return self
