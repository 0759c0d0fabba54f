"""Who uses a storage folder: recipients of its shares, and live sessions that have it mounted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from portal.core.files.shares import GROUP, WRITE, FolderShare
from portal.core.session.session import Session
from portal.errors import visible

MOST_NAMES = 10
"""Names in a text; further ones are counted."""


@dataclass(frozen=True)
class FolderUse:
    """The uses of one of a user's storage folders."""

    folder: str
    shares: tuple[FolderShare, ...]
    own: tuple[Session, ...]
    """The user's live sessions that have it mounted."""
    others: tuple[Session, ...]
    """Those of other users."""
    part: bool = False
    """Whether only something in the folder is concerned."""

    @property
    def text(self) -> str:
        """Who loses it when it is deleted or moved away; "" if nobody uses it."""
        part = ": what you delete or move out of it is gone for them, too"
        return self._words(", who lose it", part, "")

    @property
    def renamed(self) -> str:
        """What renaming it means for others and for sessions; "" if nobody uses it."""
        part = ": they see the new name, too"
        sessions = "" if self.part else ": there it keeps its old name until their end"
        return self._words(", who find it under its new name", part, sessions)

    def _words(self, whole: str, part: str, sessions: str) -> str:
        name = visible(self.folder)
        sentences = []
        if self.shares:
            who = _listed([_recipient(share) for share in self.shares])
            sentences.append(f"“{name}” is shared with {who}{part if self.part else whole}.")
        if self.own or self.others:
            sentences.append(f"“{name}” is mounted in {self._sessions()}{sessions}.")
        return " ".join(sentences)

    def _sessions(self) -> str:
        words = [f"your live session {visible(session.name)}" for session in self.own]
        owners = Counter(session.owner for session in self.others)
        for owner, count in sorted(owners.items()):
            words.append(f"{count} live session{'s' if count > 1 else ''} of {owner}")
        return _listed(words)


def _recipient(share: FolderShare) -> str:
    kind = "the group " if share.key.kind == GROUP else ""
    may = "may change it" if share.access == WRITE else "may read it"
    return f"{kind}{visible(share.key.name)} ({may})"


def _listed(words: Sequence[str]) -> str:
    """Words with commas and “and”; the first ones of many."""
    if len(words) > MOST_NAMES:
        words = [*words[:MOST_NAMES], f"{len(words) - MOST_NAMES} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def use_of(
    folder: str, shares: Iterable[FolderShare], sessions: Iterable[Session], owner: str
) -> FolderUse:
    """The use of an owner's folder; `sessions`: live ones, also with other folders."""
    mounted = [
        session
        for session in sessions
        if any(_is_of(session, mount.folder, folder, owner) for mount in session.mounts)
    ]
    return FolderUse(
        folder,
        tuple(shares),
        tuple(session for session in mounted if session.owner == owner),
        tuple(session for session in mounted if session.owner != owner),
    )


def _is_of(session: Session, mounted: str, folder: str, owner: str) -> bool:
    return mounted == (folder if session.owner == owner else f"{owner}/{folder}")


def own_folder(location: str) -> tuple[str, bool] | None:
    """The storage folder of a canonical location, and whether that is only something in it.

    None for any other location, and for names that are not UTF-8, which cannot be shared.
    """
    names = location.split("/")
    if len(names) < 2 or names[0] != "storage":
        return None
    try:
        return unquote(names[1], errors="strict"), len(names) > 2
    except UnicodeDecodeError:
        return None
