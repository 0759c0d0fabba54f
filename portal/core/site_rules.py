"""What administrators decide for all sessions, beyond what Slurm has words for."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from portal.core.units import MAX_MEMORY_MB, Minutes, Percent
from portal.core.validation import (
    _CHECKED,
)

IDLE_CPU_PERCENT = 10


class SiteRules(BaseModel):
    """Caps that Slurm has no word for; None is no cap."""

    model_config = _CHECKED

    max_shared_memory_mb: Annotated[int, Field(ge=1, le=MAX_MEMORY_MB)] | None = None
    idle_minutes: Minutes | None = None
    """How long a session may be unused before it is ended; None: for ever."""
    idle_warning: Minutes | None = None
    """How long before that its owner is warned; None: the usual span."""
    idle_cpu_percent: Percent = IDLE_CPU_PERCENT
    """How much of one core a job uses that is at work though nobody touches it."""
    idle_set: Annotated[datetime, Field(strict=False)] | None = None
    """When these rules about unused sessions began to hold."""
    public_apps: bool = True
    """Whether owners may open apps to everybody."""
    preferred_ports: bool = True
    """Whether people may ask for a port of the pool."""
