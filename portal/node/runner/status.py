"""Keeps the portal's last answer about the session in a file, for programs of the session."""

from __future__ import annotations

import contextlib
import json
import os
import time

NAME = "session.json"
FIELDS = ("name", "kept", "seconds_left", "unused")


class StatusFile:
    """`session.json` in the runner's directory; `at` is the answer's time in seconds since 1970."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, NAME)

    def write(self, answer: dict[str, object]) -> None:
        """Store an answer that has a name; errors such as a full disk are ignored."""
        if not isinstance(answer.get("name"), str):
            return
        status = {name: answer.get(name) for name in FIELDS} | {"at": time.time()}
        with contextlib.suppress(OSError):
            with open(f"{self._path}.new", "w", encoding="utf-8") as file:
                json.dump(status, file)
            os.replace(f"{self._path}.new", self._path)
