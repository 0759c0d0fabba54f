"""JSON that every reader takes: never a number that is none, whoever reported it."""

from __future__ import annotations

import logging
import math
from typing import Any

from flask.json.provider import DefaultJSONProvider

log = logging.getLogger(__name__)


class StrictJson(DefaultJSONProvider):
    """Flask's JSON, with null in the place of NaN and infinities, which JSON does not know."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        """Write JSON."""
        kwargs["allow_nan"] = False
        try:
            return super().dumps(obj, **kwargs)
        except ValueError:
            log.exception("an answer held a number that is none")
            return super().dumps(_sound(obj), **kwargs)


def _sound(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _sound(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_sound(each) for each in value]
    return value
