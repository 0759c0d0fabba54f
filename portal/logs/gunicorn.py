"""gunicorn's log in the portal's format: `--logger-class portal.logs.gunicorn.PortalLogger`."""

from __future__ import annotations

import sys
from typing import Any

from gunicorn.glogging import Logger

from portal.config import load_settings
from portal.logs.setup import configure


class PortalLogger(Logger):  # type: ignore[misc]
    """gunicorn's logger, with the portal's handler, format and level."""

    def setup(self, cfg: Any) -> None:
        """Replace gunicorn's handlers; raises SettingsError, so that gunicorn does not start."""
        super().setup(cfg)
        configure(load_settings().log)
        _forget()


def _forget() -> None:
    """Unload the portal's modules, so that each worker loads them again.

    This is gunicorn's master process, which outlives upgrades. Workers are forked from it, and
    would use the modules of the release that it was started with.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == "portal"]:
        del sys.modules[name]
