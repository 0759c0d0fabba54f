"""Request and response models for presets."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema

from portal.core.launch.presets import Preset
from portal.web.api.models.base import REQUEST, ResponseModel, Time


class PresetOut(ResponseModel):
    """A launch request saved under a name."""

    name: str
    saved: Time
    launch: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]
    """A LaunchRequest, with the names of its environment variables only."""

    @classmethod
    def of(cls, preset: Preset) -> PresetOut:
        """Build it without the values of environment variables, which may be secret."""
        launch = dict(preset.body)
        if "env" in launch:
            launch["env"] = list(launch["env"])
        return cls(name=preset.name, saved=preset.saved, launch=launch)


class PresetRequest(BaseModel):
    """The name for a new preset."""

    model_config = REQUEST

    name: Annotated[str, Field(max_length=60)]


class PresetListOut(ResponseModel):
    """The caller's presets, by name."""

    presets: list[PresetOut]
