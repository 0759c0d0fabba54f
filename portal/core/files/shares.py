"""Storage folders that users share: recipients and permissions."""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import unquote

from portal.errors import FieldError

Kind = Literal["user", "group"]
Access = Literal["read", "write"]
USER: Kind = "user"
GROUP: Kind = "group"
READ: Access = "read"
WRITE: Access = "write"
MOST = 200
"""Shares of one folder."""
MOST_RECEIVED, MOST_FROM_ONE = 400, 50
"""Shares with one user that are listed, and those of them by one owner."""
MOST_ADOPTED = 1000
"""Shares that were not created in the portal are listed up to this number per user."""
_LONGEST_NAME = 255
"""Bytes of a folder's name."""
_NAME = re.compile(r"[^\s/:,\x00-\x1f\x7f]{1,64}")


class ShareState(enum.StrEnum):
    """State of a share; an interrupted change is completed later."""

    GIVING = "giving"
    GIVEN = "given"
    ENDING = "ending"


@dataclass(frozen=True)
class ShareKey:
    """The identity of a share."""

    owner: str
    folder: str
    """A storage folder's name."""
    kind: Kind
    name: str
    """Name of a user or group, which need not exist."""


@dataclass(frozen=True)
class FolderShare:
    """A folder that its owner shares."""

    key: ShareKey
    access: Access
    created: datetime
    state: ShareState = ShareState.GIVING


@dataclass(frozen=True)
class SharedFolder:
    """A folder of another user, as its recipient sees it."""

    owner: str
    folder: str
    access: Access

    @property
    def name(self) -> str:
        """Its name among the user's folders."""
        return f"{self.owner}/{self.folder}"


def check_share(key: ShareKey) -> list[FieldError]:
    """Errors for a share, without checking whether its recipient exists."""
    if not _NAME.fullmatch(key.name):
        return [FieldError("name", "write the name of a user or group")]
    if key.kind == USER and key.name == key.owner:
        return [FieldError("name", "this is you: the folder is yours")]
    return []


def folder_name(text: object) -> str | None:
    """A storage folder's name as a file server writes it, percent-encoded.

    None for anything else, and for a name in another encoding than UTF-8, which cannot be shared.
    """
    if not isinstance(text, str) or not 0 < len(text) <= 3 * _LONGEST_NAME:
        return None
    try:
        name = unquote(text, errors="strict")
        length = len(name.encode())
    except UnicodeError:
        return None
    invalid = name in (".", "..") or set(name) & {"/", "\0"} or length > _LONGEST_NAME
    return None if invalid else name


def shared_with(
    user: str, groups: Collection[str], shares: Iterable[FolderShare]
) -> list[SharedFolder]:
    """The folders that others share with a user, by owner and name.

    As in access control lists, a share with the user takes precedence over shares with groups.
    """
    by_folder: dict[tuple[str, str], list[FolderShare]] = {}
    for share in shares:
        key = share.key
        is_for = key.name == user if key.kind == USER else key.name in groups
        if is_for and key.owner != user and share.state is not ShareState.ENDING:
            by_folder.setdefault((key.owner, key.folder), []).append(share)
    return [
        SharedFolder(*folder, _access(folder_shares))
        for folder, folder_shares in sorted(by_folder.items())
    ]


def _access(shares: Sequence[FolderShare]) -> Access:
    effective = [share for share in shares if share.key.kind == USER] or shares
    return WRITE if any(share.access == WRITE for share in effective) else READ
