"""The output of one app in a session's log, in which the runner marks each of its lines."""

from __future__ import annotations

import re

LONGEST = 4096
"""Bytes; the runner writes no longer line (node/runner/apps/app.py)."""


def app_lines(data: bytes, app: str) -> tuple[bytes, int]:
    """The whole lines of an app in a piece of a log, without its mark, and how far it was read.

    The piece's last line is left for the next piece while it is incomplete.
    """
    end = data.rfind(b"\n") + 1
    if not end and len(data) > LONGEST:
        end = len(data)
    mark = rb"^([0-9T:-]{19}Z )?\[" + re.escape(app.encode()) + rb"\] (.*\n)"
    found = re.finditer(mark, data[:end], re.MULTILINE)
    return b"".join((line[1] or b"") + line[2] for line in found), end
