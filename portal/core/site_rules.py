"""Site-wide rules set by administrators, for what Slurm cannot limit."""

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
    """Site-wide rules that Slurm cannot express; None: no cap."""

    model_config = _CHECKED

    max_shared_memory_mb: Annotated[int, Field(ge=1, le=MAX_MEMORY_MB)] | None = None
    idle_minutes: Minutes | None = None
    """How long a session may be unused before it is ended; None: unlimited."""
    idle_warning: Minutes | None = None
    """How long before that its owner is warned; None: the default time."""
    idle_cpu_percent: Percent = IDLE_CPU_PERCENT
    """CPU use above which a session counts as busy (percent of one core)."""
    idle_set: Annotated[datetime, Field(strict=False)] | None = None
    """When the rules about unused sessions last changed."""
    public_apps: bool = True
    """Whether owners may make apps public."""
    preferred_ports: bool = True
    """Whether users may request a port of the pool."""
