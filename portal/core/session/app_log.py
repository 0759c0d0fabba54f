"""The output of one app in a session's log, in which the runner marks each of its lines."""

from __future__ import annotations

import re

LONGEST = 4096
"""Maximum length in bytes of a line that the runner writes (node/runner/apps/app.py)."""


def app_lines(data: bytes, app: str) -> tuple[bytes, int]:
    """The complete lines of an app in a chunk of a log, without its mark, and the bytes consumed.

    An incomplete last line is left for the next chunk.
    """
    end = data.rfind(b"\n") + 1
    if not end and len(data) > LONGEST:
        end = len(data)
    mark = rb"^([0-9T:-]{19}Z )?\[" + re.escape(app.encode()) + rb"\] (.*\n)"
    matches = re.finditer(mark, data[:end], re.MULTILINE)
    return b"".join((line[1] or b"") + line[2] for line in matches), end
