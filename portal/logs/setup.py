"""Configures logging of a process."""

from __future__ import annotations

import logging
import sys

from portal.config.operations.log import LogSettings
from portal.logs.format import JsonFormatter, TextFormatter

ACCESS = "portal.access"
"""Logger with a line for each request."""
_NAME = "slipway"
"""Our handler's name; its class may be an earlier release's, see gunicorn.py."""
_QUIET = ("paramiko", "alembic", "urllib3", "werkzeug")
"""Libraries whose notes at INFO tell nothing that an administrator needs."""


class StderrHandler(logging.Handler):
    """Writes each record at once, so that lines of several processes do not mix."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; a failure must not stop what is being logged."""
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


def configure(settings: LogSettings) -> None:
    """Log to standard error, in the form and from the level of the settings. Idempotent."""
    handler = StderrHandler()
    handler.set_name(_NAME)
    handler.setFormatter(JsonFormatter() if settings.format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [one for one in root.handlers if one.name != _NAME]
    root.addHandler(handler)
    root.setLevel(settings.level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    # Its threads log tracebacks of failed connections, which are exceptions of ours anyhow.
    logging.getLogger("paramiko.transport").setLevel(logging.CRITICAL)
    logging.getLogger(ACCESS).setLevel(logging.INFO if settings.access else logging.CRITICAL)
    for name in ("gunicorn.error", "gunicorn.access"):  # gunicorn gives them handlers of their own
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = True
