"""Which files stay after a session's end and which are deleted, in one wording for all texts."""

from __future__ import annotations

from dataclasses import dataclass

from portal.core.session.session import Home, Session
from portal.core.units import file_size, plural
from portal.node.common.folder_name import HOME

HOME_TITLE = "your home directory"
MOST_COUNTED = 10_000
"""The runner stops counting at this number of files (node/runner/home.py)."""


@dataclass(frozen=True)
class Retention:
    """Files that stay and files that are deleted when a session ends."""

    folders: tuple[str, ...]
    """Names of folders that stay: mounted writable folders, or the home directory."""
    deletes: bool
    """Whether its home is deleted; False if it is the owner's home directory."""
    files: int | None = None
    """Files that are deleted, as last reported; hidden ones do not count."""
    size: int | None = None
    """Their size in bytes."""

    @property
    def stays(self) -> str:
        """A sentence about the folders that stay: "climate-2026 stays."; "" if none."""
        text = f"{self._stays}." if self.folders else ""
        return text[0].upper() + text[1:] if self.folders[:1] == (HOME_TITLE,) else text

    @property
    def _stays(self) -> str:
        if not self.folders:
            return ""
        *others, last = self.folders
        return f"{', '.join(others)} and {last} stay" if others else f"{last} stays"

    @property
    def goes(self) -> str:
        """A sentence about deleted files: "Everything else in this session is deleted: 3 files"."""
        if not self.deletes:
            return ""
        files = "Everything else in this session" if self.folders else "Everything in this session"
        return f"{files} is deleted{self._amount}."

    @property
    def _amount(self) -> str:
        if not self.files:
            return ""
        least = "at least " if self.files >= MOST_COUNTED else ""
        return f": {least}{plural(self.files, 'file')}, {file_size(self.size or 0)}"

    @property
    def short(self) -> str:
        """Both in one line, for lists of several sessions."""
        if not self.deletes:
            return self._stays or "nothing has been saved in it"
        goes = f"the rest is deleted{self._amount}"
        return f"{self._stays}, {goes}" if self.folders else f"everything is deleted{self._amount}"

    @property
    def advice(self) -> str:
        """What to do before the end if nothing is mounted; else ""."""
        if self.folders or not self.deletes:
            return ""
        return "No folder is mounted: download what you need from JupyterLab or by SSH."


def retention(session: Session) -> Retention:
    """Determine which files stay and which are deleted when this session ends."""
    mounted = [mount.folder for mount in session.mounts if not mount.read_only]
    folders = [HOME_TITLE if folder == HOME else folder for folder in mounted]
    if session.home is Home.PERSISTENT:
        all_folders = [HOME_TITLE, *(folder for folder in folders if folder != HOME_TITLE)]
        return Retention(tuple(all_folders), deletes=False)
    # Before its start nothing has been saved in it.
    started = session.started is not None
    return Retention(tuple(folders), started, session.home_files, session.home_bytes)
