"""Formats of log lines: text and JSON."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from portal.errors import clip
from portal.logs import context

FIELDS = "fields"
"""Attribute of records with further fields for JSON: `log.info(…, extra={FIELDS: {…}})`."""
TRACE = "trace | "
"""Prefix of each line of a traceback in text. It does not begin with whitespace, which older
versions of systemd's journal remove, and does not match the pattern of a record's first line."""
LONGEST = 8000
"""Characters of a line, which are at most 32 KB: systemd's journal divides lines at 48 KB."""


def escaped(text: str) -> str:
    """Escape characters that could end, hide or reorder a line, as Python does."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return clip(text, LONGEST)


class Formatter(logging.Formatter):
    """Base of both formats: times are UTC with milliseconds, and a message is one line."""

    @staticmethod
    def moment(record: logging.LogRecord) -> str:
        """The time of a record, in ISO 8601."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{seconds}.{int(record.msecs):03d}Z"

    def trace(self, record: logging.LogRecord) -> str:
        """The traceback, if the record has one; the text of an exception may have any character."""
        parts = [self.formatException(record.exc_info)] if record.exc_info else []
        parts += [self.formatStack(record.stack_info)] if record.stack_info else []
        return "\n".join(parts)


class TextFormatter(Formatter):
    """`TIME LEVEL LOGGER: MESSAGE user=… session=… request=…`, a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """One line for a record, and its traceback, each line of which begins with TRACE."""
        fields = "".join(f" {name}={value}" for name, value in context.fields().items())
        head = f"{self.moment(record)} {record.levelname} {record.name}"
        lines = [escaped(f"{head}: {record.getMessage()}") + escaped(fields)]
        if trace := self.trace(record):
            lines += [f"{TRACE}{escaped(line)}" for line in trace.split("\n")]
        return "\n".join(lines)


class JsonFormatter(Formatter):
    """One object per line: time, level, logger, message, and the request's context."""

    def format(self, record: logging.LogRecord) -> str:
        """One line for a record."""
        values: dict[str, Any] = {
            "time": self.moment(record),
            "level": record.levelname,
            "logger": record.name,
            "message": escaped(record.getMessage()),
            **context.fields(),
            **getattr(record, FIELDS, {}),
        }
        if trace := self.trace(record):
            values["exception"] = trace
        text = json.dumps(values, ensure_ascii=False, default=str)
        return text if text.isprintable() else "".join(map(_json_escaped, text))


def _json_escaped(character: str) -> str:
    """Escape characters that JSON permits but some readers treat as the end of a line."""
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
