"""Interface to the store of shared folders."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from portal.core.files.shares import Access, FolderShare, ShareKey, ShareState


class ShareStore(Protocol):
    """Shares of storage folders. Every method is one transaction."""

    def of_owner(self, owner: str, folder: str | None = None) -> list[FolderShare]:
        """A user's shares, by folder, kind and name; of one folder, or all."""
        ...

    def with_user(self, user: str) -> list[FolderShare]:
        """What others share with a user by name."""
        ...

    def has_groups(self) -> bool:
        """Whether anything is shared with any group."""
        ...

    def with_groups(self, groups: Collection[str]) -> list[FolderShare]:
        """What is shared with these groups."""
        ...

    def get(self, key: ShareKey) -> FolderShare | None:
        """One share."""
        ...

    def put(self, share: FolderShare, most: int) -> bool:
        """Store a share, in place of an earlier one.

        False if it is new and its folder has `most` already.
        """
        ...

    def set_state(self, key: ShareKey, access: Access, state: ShareState) -> None:
        """Note how far a share is, unless its access has changed meanwhile."""
        ...

    def remove(self, key: ShareKey) -> None:
        """Delete a share."""
        ...

    def remove_unchanged(self, share: FolderShare) -> None:
        """Delete a share, unless it has changed since it was read."""
        ...

    def copy(self, owner: str, folder: str, to: str, now: datetime) -> list[FolderShare]:
        """Store the shares of a folder for another name of it, too; returns those that are new."""
        ...

    def remove_all(self, owner: str, folder: str) -> None:
        """Delete the shares of a folder."""
        ...
