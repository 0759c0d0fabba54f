"""What administrators decide beyond Slurm's limits: templates, who sees which image, caps."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from portal.core.launch import MAX_MEMORY_MB, MIN_MEMORY_MB, Word

_CHECKED = ConfigDict(extra="forbid", frozen=True, strict=True, from_attributes=True)


class Template(BaseModel):
    """Resources with a name, kept by administrators; memory in MiB, time in minutes."""

    model_config = _CHECKED

    name: Word
    title: Annotated[str, Field(min_length=1, max_length=60)]
    description: Annotated[str, Field(max_length=200)] = ""
    cpus: Annotated[int, Field(ge=1, le=4096)]
    memory_mb: Annotated[int, Field(ge=MIN_MEMORY_MB, le=MAX_MEMORY_MB)]
    shared_memory_mb: Annotated[int, Field(ge=1, le=MAX_MEMORY_MB)] | None = None
    time_limit: Annotated[int, Field(ge=1, le=525_600)] | None = None
    resource_group: Word | None = None
    place: int = 0
    """Templates are shown in this order, then by name."""


class ImageRule(BaseModel):
    """Who may see and launch one image; without a rule everybody may."""

    model_config = _CHECKED

    environment: Word
    version: Word
    seen_by: Literal["everybody", "some", "nobody"] = "everybody"
    accounts: tuple[str, ...] = ()
    """Slurm accounts, where only some may see it."""
    users: tuple[str, ...] = ()


class SiteRules(BaseModel):
    """Caps that Slurm has no word for; None is no cap."""

    model_config = _CHECKED

    max_shared_memory_mb: Annotated[int, Field(ge=1, le=MAX_MEMORY_MB)] | None = None


class Entry(BaseModel):
    """One line of the journal: who did what, when, to what, and from where."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: int = 0
    """Given by the store; later entries have larger ones."""
    time: datetime
    who: str
    action: str
    """One of core/journal.py's words, such as "session.launch"."""
    target: str = ""
    detail: str = ""
    address: str = ""
