"""Configuration of a process's logging."""

from __future__ import annotations

import logging
import sys

from portal.config.log import LogSettings
from portal.logs.format import JsonFormatter, TextFormatter

ACCESS = "portal.access"
"""Logger with a line for each request."""
_NAME = "slipway"
"""Our handler's name; its class may belong to an earlier release, see gunicorn.py."""
_QUIET = ("paramiko", "alembic", "urllib3", "werkzeug", "portal.store.engine._Pool")
"""Libraries whose messages at INFO are of no use to administrators; the pool is SQLAlchemy's."""


class StderrHandler(logging.Handler):
    """Writes each record at once, so that lines of several processes do not mix."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; a failure must not stop the logged action."""
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


def configure(settings: LogSettings) -> None:
    """Log to standard error, in the format and from the level of the settings. Idempotent."""
    handler = StderrHandler()
    handler.set_name(_NAME)
    handler.setFormatter(JsonFormatter() if settings.format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [h for h in root.handlers if h.name != _NAME]
    root.addHandler(handler)
    root.setLevel(settings.level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    # Its threads log tracebacks of failed connections, which also raise our own exceptions.
    logging.getLogger("paramiko.transport").setLevel(logging.CRITICAL)
    logging.getLogger(ACCESS).setLevel(logging.INFO if settings.access else logging.CRITICAL)
    for name in ("gunicorn.error", "gunicorn.access"):  # gunicorn adds its own handlers
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = True
