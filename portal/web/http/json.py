"""JSON that every parser accepts, even where a reported number is not finite."""

from __future__ import annotations

import logging
import math
from typing import Any

from flask.json.provider import DefaultJSONProvider

log = logging.getLogger(__name__)


class StrictJson(DefaultJSONProvider):
    """Flask's JSON provider, which replaces NaN and infinities by null, since JSON lacks them."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        """Serialise to JSON."""
        kwargs["allow_nan"] = False
        try:
            return super().dumps(obj, **kwargs)
        except ValueError:
            log.exception("a response contained a number that is not finite")
            return super().dumps(_finite(obj), **kwargs)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
