"""[login] and [slurm]: the login node, and how Slurm is queried."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from portal.config.base import FROZEN


class LoginSettings(BaseModel):
    """The login node: passwords are checked there and Slurm's commands run there."""

    model_config = FROZEN

    host: str = Field("login", description="Login node with sshd and Slurm's commands.")
    port: int = Field(22, description="Its SSH port.")
    files_host: str = Field(
        "",
        description="Host with sshd and the command slipway, on which people's files are read and "
        "written, such as a data transfer node; empty: the login node.",
    )
    known_hosts: str = Field(
        "/etc/slipway/known_hosts", description="File with its host key, in OpenSSH's format."
    )
    reader: str = Field("slipway", description="Unprivileged account that reads Slurm's state.")
    minimum_uid: int = Field(1000, description="Accounts with a lower number (UID) are refused.")
    certificate_minutes: int = Field(
        5, ge=1, description="Minutes that a user's SSH certificate is valid."
    )
    source_address: str = Field(
        "", description="Address that certificates are restricted to; empty: the connection's own."
    )
    min_uid: int = Field(
        1000,
        ge=1,
        description="Smallest user number of a person; services never act for accounts below it.",
    )
    account_checks: int = Field(
        300,
        ge=0,
        description="Accounts checked per minute, by logging in as them; 0: none.",
    )


class SlurmSettings(BaseModel):
    """How Slurm is queried, and what the portal may do there."""

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
    operator: str = Field(
        "",
        description="Account with AdminLevel=Operator that extends time limits; empty: none.",
    )
    extend_minutes: int = Field(60, ge=1, description="Minutes that one extension adds.")
