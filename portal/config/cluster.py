"""[login] and [slurm]: the login node, and how Slurm is queried."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from portal.config.base import FROZEN
from portal.core.account_names import DEFAULT, AccountNames


class LoginSettings(BaseModel):
    """The login node: passwords are checked there and Slurm's commands run there."""

    model_config = FROZEN

    host: str = Field("login", description="Login node with sshd and Slurm's commands.")
    hosts: list[str] = Field(
        [],
        description="Several login nodes in the place of host, tried in this order; one that does "
        "not answer is left out until it does again. All share accounts and home directories, and "
        "known_hosts has the keys of all of them.",
    )
    port: int = Field(22, description="Its SSH port.")
    files_host: str = Field(
        "",
        description="Host with sshd and the command slipway, on which people's files are read and "
        "written, such as a data transfer node; empty: the login node.",
    )
    known_hosts: str = Field(
        "/etc/slipway/known_hosts", description="File with its host key, in OpenSSH's format."
    )
    account_pattern: str = Field(
        DEFAULT,
        description="Names of accounts that may use the portal, as a regular expression for the "
        'whole name, for example "[A-Za-z][A-Za-z0-9._@-]{0,63}". Other characters than letters, '
        'digits, "_", ".", "@" and "-" cannot be permitted, nor more than 64.',
    )
    second_factor: str = Field(
        "",
        max_length=60,
        description="Where sshd asks for more than the password (keyboard-interactive): title of "
        'the field for it in the portal, such as "Verification code"; empty: no field.',
    )
    login_seconds: int = Field(
        30,
        ge=5,
        le=50,
        description="Seconds that a log-in may take, confirmation on a telephone included.",
    )
    reader: str = Field("slipway", description="Unprivileged account that reads Slurm's state.")
    minimum_uid: int = Field(
        1000,
        description="Accounts with a lower number (UID) are refused; services never act for them.",
    )
    certificate_minutes: int = Field(
        5, ge=1, description="Minutes that a user's SSH certificate is valid."
    )
    source_address: str = Field(
        "", description="Address that certificates are restricted to; empty: the connection's own."
    )
    account_checks: int = Field(
        300,
        ge=0,
        description="Accounts checked per minute, by logging in as them; 0: none.",
    )

    @field_validator("account_pattern")
    @classmethod
    def _is_usable(cls, pattern: str) -> str:
        return AccountNames(pattern).pattern

    @model_validator(mode="before")
    @classmethod
    def _first_is_host(cls, data: Any) -> Any:
        hosts = data.get("hosts") if isinstance(data, dict) else None
        if not hosts or not isinstance(hosts, list):
            return data
        if "host" in data and data["host"] != hosts[0]:
            raise ValueError("host and hosts exclude each other: name all login nodes in hosts")
        return data | {"host": hosts[0]}

    @property
    def all_hosts(self) -> tuple[str, ...]:
        """The login nodes in the order in which they are tried."""
        return tuple(dict.fromkeys(self.hosts or [self.host]))

    def at(self, host: str) -> LoginSettings:
        """The settings for one host only."""
        return self.model_copy(update={"host": host, "hosts": []})

    @cached_property
    def names(self) -> AccountNames:
        """The site's rule for names of accounts."""
        return AccountNames(self.account_pattern)


class SlurmSettings(BaseModel):
    """Queries of Slurm, and the portal's permissions in it."""

    model_config = FROZEN

    reader: Literal["commands", "pyslurm"] = Field(
        "commands",
        description="What reads the queue: squeue on the login node, or pyslurm on this host, "
        "which then needs slurm.conf, munge, the cluster's accounts, and pyslurm 24.11 built for "
        "this Slurm. Where pyslurm cannot be used, squeue is.",
    )
    poll_seconds: float = Field(2.0, gt=0, description="Seconds between two queries of the queue.")
    partitions_seconds: float = Field(
        30.0, gt=0, description="Seconds between two queries of nodes and partitions."
    )
    limits_seconds: float = Field(60.0, gt=0, description="Seconds between two queries of limits.")
    command_seconds: float = Field(
        20.0, gt=0, description="Seconds that one of Slurm's commands may take."
    )
    admins: list[str] = Field(
        [], description="Users who see and stop all users' sessions, and administer the site."
    )
    admin_groups: list[str] = Field(
        [],
        description="Unix groups on the login node whose members are administrators as well.",
    )
    operator: str = Field(
        "",
        description="Account with AdminLevel=Operator: cancels jobs and extends them. Empty: none.",
    )
    extend_minutes: int = Field(60, ge=1, description="Minutes that one extension adds.")
