"""How a line of the log looks: as text, or as JSON."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from portal.logs import context

FIELDS = "fields"
"""Attribute of records with further fields for JSON: `log.info(…, extra={FIELDS: {…}})`."""


class Formatter(logging.Formatter):
    """What both forms share: times are UTC with milliseconds, and a message is one line."""

    @staticmethod
    def moment(record: logging.LogRecord) -> str:
        """The time of a record, in ISO 8601."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{seconds}.{int(record.msecs):03d}Z"

    @staticmethod
    def line(record: logging.LogRecord) -> str:
        """The message; signs that could pretend to be another line are escaped."""
        text = record.getMessage()
        if text.isprintable():
            return text
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

    def trace(self, record: logging.LogRecord) -> str:
        """The traceback, if the record has one."""
        parts = [self.formatException(record.exc_info)] if record.exc_info else []
        parts += [self.formatStack(record.stack_info)] if record.stack_info else []
        return "\n".join(parts)


class TextFormatter(Formatter):
    """`TIME LEVEL LOGGER: MESSAGE user=… session=… request=…`, a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """One line for a record, and its traceback."""
        known = "".join(f" {name}={value}" for name, value in context.fields().items())
        head = f"{self.moment(record)} {record.levelname} {record.name}"
        lines = [f"{head}: {self.line(record)}{known}", self.trace(record)]
        return "\n".join(filter(None, lines))


class JsonFormatter(Formatter):
    """An object a line: time, level, logger, message, and what is known of the request."""

    def format(self, record: logging.LogRecord) -> str:
        """One line for a record."""
        values: dict[str, Any] = {
            "time": self.moment(record),
            "level": record.levelname,
            "logger": record.name,
            "message": self.line(record),
            **context.fields(),
            **getattr(record, FIELDS, {}),
        }
        if trace := self.trace(record):
            values["exception"] = trace
        return json.dumps(values, ensure_ascii=False, default=str)
