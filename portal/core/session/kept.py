"""What stays after a session's end, and what is deleted: the same facts in every text about it."""

from __future__ import annotations

from dataclasses import dataclass

from portal.core.session.session import Home, Session
from portal.core.units import file_size, plural
from portal.node.common.folder_name import HOME

HOME_TITLE = "your home directory"
MOST_COUNTED = 10_000
"""The runner stops counting at this number of files (node/runner/home.py)."""


@dataclass(frozen=True)
class Kept:
    """What stays and what is deleted when a session ends."""

    folders: tuple[str, ...]
    """What stays, by name: mounted folders that can be written, or the home directory."""
    deletes: bool
    """Whether its home is deleted; False if it is the owner's own."""
    files: int | None = None
    """Files that are deleted, as last reported; hidden ones do not count."""
    size: int | None = None
    """Their size in bytes."""

    @property
    def stays(self) -> str:
        """What stays, as a sentence: "climate-2026 stays."; "" if nothing does."""
        text = f"{self._stays}." if self.folders else ""
        return text[0].upper() + text[1:] if self.folders[:1] == (HOME_TITLE,) else text

    @property
    def _stays(self) -> str:
        if not self.folders:
            return ""
        *most, last = self.folders
        return f"{', '.join(most)} and {last} stay" if most else f"{last} stays"

    @property
    def goes(self) -> str:
        """What is deleted, as a sentence: "Everything else in this session is deleted: 3 files"."""
        if not self.deletes:
            return ""
        what = "Everything else in this session" if self.folders else "Everything in this session"
        return f"{what} is deleted{self._amount}."

    @property
    def _amount(self) -> str:
        if not self.files:
            return ""
        least = "at least " if self.files >= MOST_COUNTED else ""
        return f": {least}{plural(self.files, 'file')}, {file_size(self.size or 0)}"

    @property
    def short(self) -> str:
        """Both in one line, for one of several sessions."""
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


def kept(session: Session) -> Kept:
    """What stays and what is deleted when this session ends."""
    mounted = [mount.folder for mount in session.mounts if not mount.read_only]
    folders = [HOME_TITLE if folder == HOME else folder for folder in mounted]
    if session.home is Home.PERSISTENT:
        own = [HOME_TITLE, *(folder for folder in folders if folder != HOME_TITLE)]
        return Kept(tuple(own), deletes=False)
    # Before its start nothing has been saved in it.
    begun = session.started is not None
    return Kept(tuple(folders), begun, session.home_files, session.home_bytes)
