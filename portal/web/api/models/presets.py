"""Answers about presets."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

from portal.core.launch.presets import Preset
from portal.web.api.models.base import Answer, Time


class PresetOut(Answer):
    """A launch that was saved under a name."""

    name: str
    saved: Time
    launch: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]
    """A LaunchRequest, with only the names of its variables."""

    @classmethod
    def of(cls, preset: Preset) -> PresetOut:
        """Build it without the values of the variables: they are as secret as a session's."""
        launch = dict(preset.body)
        if "env" in launch:
            launch["env"] = list(launch["env"])
        return cls(name=preset.name, saved=preset.saved, launch=launch)


class PresetListOut(Answer):
    """The caller's presets, by name."""

    presets: list[PresetOut]
