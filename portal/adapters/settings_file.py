"""A settings file for other programs."""

from __future__ import annotations

import os
from pathlib import Path

from portal.core.interfaces.systems import SettingsFile
from portal.errors import Unavailable


class LocalSettingsFile(SettingsFile):
    """A file in a local folder, which other machines may share."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def replace(self, text: str) -> None:
        draft = self._path.with_name(f".{self._path.name}.new")
        try:
            draft.write_text(text, encoding="utf-8")
            draft.chmod(0o644)  # it has no secrets, and all users have to read it
            os.replace(draft, self._path)
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be written: {error.strerror}") from error
