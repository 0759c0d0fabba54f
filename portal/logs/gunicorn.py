"""gunicorn's own lines in the portal's form: `--logger-class portal.logs.gunicorn.PortalLogger`."""

from __future__ import annotations

import sys
from typing import Any

from gunicorn.glogging import Logger

from portal.config import load_settings
from portal.logs.setup import configure


class PortalLogger(Logger):  # type: ignore[misc]
    """gunicorn's logger, with the portal's handler, form and level."""

    def setup(self, cfg: Any) -> None:
        """Replace gunicorn's handlers; raises SettingsError, with which gunicorn does not start."""
        super().setup(cfg)
        configure(load_settings().log)
        _forget()


def _forget() -> None:
    """Have each worker load the portal's modules again.

    This is gunicorn's first process, which outlives upgrades. Workers are forked from it, and
    would go on with the modules of the release that it was started with.
    """
    for name in [one for one in sys.modules if one.partition(".")[0] == "portal"]:
        del sys.modules[name]
