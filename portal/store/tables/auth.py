"""Logins, accounts and login attempts."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, BigInteger
from sqlmodel import Field, SQLModel

from portal.store.tables.columns import WordTuple, time_column


class LoginRow(SQLModel, table=True):
    """A browser's login or an API token; fields as in core.auth.logins.Login, and `revoked`."""

    __tablename__ = "login"

    hash: str = Field(primary_key=True)
    id: str = Field(unique=True, index=True)
    kind: str
    user: str = Field(index=True)
    name: str = ""
    scopes: tuple[str, ...] = Field(default=(), sa_type=WordTuple)
    created: datetime = time_column()
    used: datetime = time_column()
    expires: datetime = time_column()
    address: str = ""
    method: str = ""
    issuer: str = ""
    subject: str = Field(default="", index=True)
    sid: str = ""
    admin: bool = False
    id_token: str = ""
    purpose: str = ""
    revoked: datetime | None = time_column(default=None, index=True)
    seen: datetime | None = time_column(default=None)


class ServiceTokenRow(SQLModel, table=True):
    """A service's token; fields as in core.auth.service_tokens.ServiceToken."""

    __tablename__ = "service_token"

    hash: str = Field(primary_key=True)
    id: str = Field(unique=True, index=True)
    name: str
    users: tuple[str, ...] = Field(default=(), sa_type=WordTuple)
    groups: list[str] = Field(default_factory=list, sa_type=JSON)
    created: datetime = time_column()
    used: datetime | None = time_column(default=None)
    expires: datetime = time_column()


class ServiceUseRow(SQLModel, table=True):
    """The last use of a service's token for a user that the audit log has."""

    __tablename__ = "service_use"

    token: str = Field(primary_key=True)
    user: str = Field(primary_key=True)
    used: datetime = time_column()


class AccountRow(SQLModel, table=True):
    """Last known status of an account's password on the login node."""

    __tablename__ = "account"

    user: str = Field(primary_key=True)
    password: str


class AttemptRow(SQLModel, table=True):
    """State of a rate limit (GCRA): theoretical arrival time, in milliseconds since 1970."""

    __tablename__ = "attempt"

    key: str = Field(primary_key=True)
    until: int = Field(sa_type=BigInteger)


class KnownNetworkRow(SQLModel, table=True):
    """A network from which an account has logged in; `seen` in milliseconds since 1970."""

    __tablename__ = "known_network"

    user: str = Field(primary_key=True)
    network: str = Field(primary_key=True)
    seen: int = Field(sa_type=BigInteger)


class RefusalRow(SQLModel, table=True):
    """Wrong passwords; fields as in core.auth.logins.FailedAttempts."""

    __tablename__ = "refusal"

    network: str = Field(primary_key=True)
    hour: int = Field(primary_key=True)
    user: str = Field(primary_key=True)
    count: int
