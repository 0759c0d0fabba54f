"""Sharing of storage folders: rows in the database, and the file system's access control lists.

A row is stored before access is given, and deleted after access has been taken back: a crash leaves
no access that is not listed. What a crash has left unfinished is finished when it is next seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import quote, unquote

from portal.core.auth.person import Person
from portal.core.files.entries import Entry, Operation
from portal.core.files.shares import (
    GROUP,
    MOST,
    READ,
    USER,
    WRITE,
    Access,
    FolderShare,
    SharedFolder,
    ShareKey,
    ShareState,
    check_share,
    shared_with,
)
from portal.core.interfaces.auth import Accounts
from portal.core.interfaces.files.shares import ShareStore
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.errors import (
    Conflict,
    DatabaseUnavailable,
    Forbidden,
    InvalidRequest,
    NotFound,
    PortalError,
    Unavailable,
)
from portal.services.files.files import Files, Json


class FolderShares:
    """What users share with each other."""

    def __init__(
        self,
        files: Files,
        store: ShareStore,
        accounts: Accounts,
        clock: Clock,
        record: RecordEvent,
    ) -> None:
        self._files = files
        self._store = store
        self._accounts = accounts
        self._clock = clock
        self._record = record

    def share(self, person: Person, key: ShareKey, access: Access) -> tuple[FolderShare, Json]:
        """Give a user or group access to an own folder, or change it.

        Returns the share, and what the file server reports of it. Whether there is a user or group
        of this name makes no difference. Raises InvalidRequest, NotFound, Conflict or Unavailable
        (then the share is listed as unfinished).
        """
        if problems := check_share(key):
            raise InvalidRequest(problems)
        self._files.entry(person, _location(key.folder))
        before = self._store.get(key)
        wanted = FolderShare(key, access, before.created if before else self._clock())
        if not self._store.put(wanted, MOST):
            raise Conflict(f"A folder can be shared with up to {MOST} users and groups.")
        self._record(person.name, "folder.share", f"{_words(key)} ({access})")
        return self._give(person, wanted, before)

    def _give(
        self, person: Person, share: FolderShare, before: FolderShare | None
    ) -> tuple[FolderShare, Json]:
        key = share.key
        body = {"kind": key.kind, "name": key.name, "access": share.access}
        try:
            report = self._files.ask(person, "PUT", "shares", _location(key.folder), body=body)
        except (Unavailable, DatabaseUnavailable):
            raise  # unknown how far it is: it stays in the list
        except PortalError:
            self._restore(key, before)
            raise
        return self._settled(share, report), report

    def _restore(self, key: ShareKey, before: FolderShare | None) -> None:
        """Forget a change that the file server has refused."""
        if before is None:
            self._store.remove(key)
        else:
            self._store.put(before, MOST)

    def _settled(self, share: FolderShare, report: Json) -> FolderShare:
        if report.get("running"):
            return share
        self._store.set_state(share.key, share.access, ShareState.GIVEN)
        return replace(share, state=ShareState.GIVEN)

    def take_back(self, person: Person, key: ShareKey) -> bool:
        """End a share; returns whether it has ended, or still goes on in a large folder.

        Raises NotFound, Conflict or Unavailable (then it is listed as unfinished).
        """
        known = self._store.get(key)
        if known is None:
            raise NotFound("This folder is not shared so.")
        self._store.set_state(key, known.access, ShareState.ENDING)
        try:
            ended = self._end(person, key)
        except (Conflict, Forbidden):  # refused, so nothing has changed
            self._store.set_state(key, known.access, known.state)
            raise
        self._record(person.name, "folder.unshare", _words(key))
        return ended

    def _end(self, person: Person, key: ShareKey) -> bool:
        query = {"kind": key.kind, "name": key.name}
        try:
            report = self._files.ask(person, "DELETE", "shares", _location(key.folder), query)
        except NotFound:  # the folder has gone, and its list with it
            report = {}
        except Conflict:
            if self._files.entry(person, _location(key.folder)).kind == "folder":
                raise
            report = {}  # something else has its name
        if report.get("running"):
            return False
        self._store.remove(key)
        return True

    def of_folder(self, person: Person, folder: str) -> tuple[list[FolderShare], Json]:
        """An own folder's shares, and the change that is going on; finishes what was cut off.

        Raises NotFound, Conflict or Unavailable.
        """
        found = self._files.ask(person, "GET", "shares", _location(folder))
        reported = found.get("change")
        change: Json = reported if isinstance(reported, dict) else {}
        if not change.get("running"):
            self._adopt(person, folder, found.get("shares"))
        for share in self._store.of_owner(person.name, folder):
            if share.state is not ShareState.GIVEN and not change.get("running"):
                self._finish(person, share, change)
        return self._store.of_owner(person.name, folder), change

    def _adopt(self, person: Person, folder: str, listed: object) -> None:
        """List access that was given or taken along without the portal, such as in a shell."""
        known = {share.key for share in self._store.of_owner(person.name, folder)}
        # What it sends is the user's own process' word.
        for one in listed if isinstance(listed, list) else []:
            found = one if isinstance(one, dict) else {}
            kind = GROUP if found.get("kind") == GROUP else USER
            key = ShareKey(person.name, folder, kind, str(found.get("name") or ""))
            access = WRITE if found.get("access") == WRITE else READ
            if key not in known and not check_share(key):
                self._store.put(FolderShare(key, access, self._clock(), ShareState.GIVEN), MOST)

    def _finish(self, person: Person, share: FolderShare, change: Json) -> None:
        key, ends = share.key, share.state is ShareState.ENDING
        wanted = (key.kind, key.name, None if ends else share.access)
        done = (change.get("kind"), change.get("name"), change.get("access")) == wanted
        if not done or change.get("problem"):
            if ends:
                self._end(person, key)
            else:
                self._give(person, share, share)
        elif ends:
            self._store.remove(key)
        else:
            self._store.set_state(key, share.access, ShareState.GIVEN)

    def mine(self, person: Person) -> list[FolderShare]:
        """All that the user shares, as stored."""
        return self._store.of_owner(person.name)

    def with_me(self, person: Person) -> list[SharedFolder]:
        """What others share with the user, by name or a group; raises Unavailable."""
        found = self._store.with_user(person.name)
        groups: frozenset[str] = frozenset()
        if self._store.has_groups():
            identity = self._accounts.identity(person.name)
            groups = identity.groups if identity else groups
            found += self._store.with_groups(groups)
        return shared_with(person.name, groups, found)

    # Changes of folders that are shared

    def rename(self, person: Person, location: str, name: str) -> Entry:
        """As Files.rename; a storage folder's shares go along."""
        folder = _folder(location)
        if folder is None or not self._store.of_owner(person.name, folder):
            return self._files.rename(person, location, name)
        with self.while_renaming(person, folder, name):
            return self._files.rename(person, location, name)

    def operate(self, person: Person, order: Json) -> Operation:
        """As Files.operate; shares of storage folders end before these are moved or deleted."""
        if order.get("kind") in ("move", "delete"):
            for location in order.get("items") or ():
                if (folder := _folder(str(location))) is not None:
                    self.end_all(person, folder)
        return self._files.operate(person, order)

    @contextmanager
    def while_renaming(self, person: Person, folder: str, to: str) -> Iterator[None]:
        """Take a folder's shares along when it gets another name.

        Meanwhile both names are listed, so that a crash leaves no access that is not.
        """
        self._store.copy(person.name, folder, to, self._clock())
        try:
            yield
        except Unavailable:
            raise  # unknown which name it has: both stay listed
        except BaseException:
            self._store.remove_all(person.name, to)
            raise
        self._store.remove_all(person.name, folder)

    def end_all(self, person: Person, folder: str) -> None:
        """End a folder's shares, before it is deleted; raises Conflict or Unavailable."""
        for share in self._store.of_owner(person.name, folder):
            if not self.take_back(person, share.key):
                raise Conflict("Access of others is being taken back. Try again in a moment.")


def _location(folder: str) -> str:
    return f"storage/{quote(folder, safe='')}"


def _folder(location: str) -> str | None:
    """The storage folder of a location; None if it is something else."""
    root, _, name = location.strip("/").partition("/")
    return unquote(name) if root == "storage" and name and "/" not in name else None


def _words(key: ShareKey) -> str:
    return f"{key.folder} with the {key.kind} {key.name}"
