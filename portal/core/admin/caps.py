"""Request model of the site-wide caps."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ValidationInfo, field_validator

from portal.core.site_rules import IDLE_CPU_PERCENT, SiteRules
from portal.core.units import Minutes, Percent, SharedMemory
from portal.core.validation import (
    STRICT,
    wrong,
)


class CapsRequest(BaseModel):
    """The caps as administrators set them; null removes one."""

    model_config = STRICT

    max_shared_memory: SharedMemory | None = None
    idle_minutes: Minutes | None = None
    idle_warning: Minutes | None = None
    idle_cpu_percent: Percent = IDLE_CPU_PERCENT
    public_apps: bool = True
    preferred_ports: bool = True

    @field_validator("idle_warning")
    @classmethod
    def _warns_in_time(cls, warning: int | None, info: ValidationInfo) -> int | None:
        if warning is None or "idle_minutes" not in info.data:
            return warning
        minutes = info.data["idle_minutes"]
        if minutes is None:
            raise wrong("leave it out if unused sessions are never ended")
        if warning >= minutes:
            raise wrong(f"use less than the {minutes} minutes after which sessions are ended")
        return warning

    def rules(self, before: SiteRules, now: datetime) -> SiteRules:
        """The rules to store instead of `before`."""
        plain = self.model_dump(exclude={"max_shared_memory"})
        old = (before.idle_minutes, before.idle_warning)
        new = (self.idle_minutes, self.idle_warning)
        since = before.idle_set if new == old else now
        return SiteRules(**plain, max_shared_memory_mb=self.max_shared_memory, idle_set=since)
