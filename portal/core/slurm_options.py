"""Slurm's own options of a launch: account, QOS, reservation, constraint and whole node."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import AfterValidator, WithJsonSchema

from portal.core.validation import wrong

MAX_NAME = 100
MAX_CONSTRAINT = 200

# Slurm permits nearly anything in a name. Quotes, backslashes, commas and white space would be read
# by sbatch as something else than a part of one name.
_NAME = re.compile(r"[^\s\x00-\x1f\x7f\"'\\,|`]{1,100}")
# Slurm accepts a partition named "long jobs". Characters special to shells are never needed.
_GROUP = re.compile(r"(?!-)(?:[^\s\x00-\x1f\x7f\"'\\,|`$;&<>()]| ){1,100}")
_CONSTRAINT = re.compile(r"[\w.:&|*!()\[\]+-]{1,200}")


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise wrong(
            "write one name of Slurm's: up to 100 characters, no spaces, commas, bars or quotes"
        )
    return text


def is_group_name(text: str) -> bool:
    """Whether this can name a partition in a request."""
    matches = _GROUP.fullmatch(text) is not None
    return matches and text.isprintable() and text == text.strip()


def _group(text: str) -> str:
    if not is_group_name(text):
        raise wrong(
            "write one name of Slurm's: up to 100 characters without commas, bars, quotes and "
            "other signs of shells"
        )
    return text


def _constraint(text: str) -> str:
    if not _CONSTRAINT.fullmatch(text):
        raise wrong(
            "write names of features, joined as sbatch joins them, for example skylake&ssd "
            "(at most 200 characters, no spaces)"
        )
    return text


SlurmName = Annotated[
    str,
    AfterValidator(_name),
    WithJsonSchema(
        {"type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": r"^[^\s,|]+$"}
    ),
]
"""A name of an account, a QOS or a reservation."""

GroupName = Annotated[
    str,
    AfterValidator(_group),
    WithJsonSchema(
        {"type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": r"^[^\t\r\n,|]+$"}
    ),
]
"""A name of a partition, in which sites use spaces and letters of any script."""

Constraint = Annotated[
    str,
    AfterValidator(_constraint),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_CONSTRAINT}),
]
"""The value of sbatch's --constraint: features of nodes and how they are joined."""


@dataclass(frozen=True)
class SlurmOptions:
    """The chosen values of Slurm's own options; "" leaves a choice to Slurm's defaults."""

    account: str = ""
    qos: str = ""
    reservation: str = ""
    constraint: str = ""
    exclusive: bool = False
    """The whole node, of which the session still uses only its requested resources."""


class HasSlurmOptions(Protocol):
    """A request that may name these options; None leaves one to Slurm."""

    @property
    def account(self) -> str | None: ...
    @property
    def qos(self) -> str | None: ...
    @property
    def reservation(self) -> str | None: ...
    @property
    def constraint(self) -> str | None: ...
    @property
    def exclusive(self) -> bool: ...


def options_in(request: HasSlurmOptions) -> SlurmOptions:
    """The options that a request names."""
    return SlurmOptions(
        account=request.account or "",
        qos=request.qos or "",
        reservation=request.reservation or "",
        constraint=request.constraint or "",
        exclusive=request.exclusive,
    )


NO_OPTIONS = SlurmOptions()
