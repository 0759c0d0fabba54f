"""Sharing of storage folders: rows in the database, and the file system's access control lists.

A row is stored before access is given, and deleted after access has been taken back: a crash leaves
no access that is not listed. What a crash has left unfinished is finished when it is next seen.
Whether something is shared is decided by the file server, from the list of the folder itself and
not from any name of it; it refuses to move or delete what is shared, until the portal has seen to
the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from portal.core.auth.person import Person
from portal.core.files.entries import Entry, Operation
from portal.core.files.location import canonical
from portal.core.files.shares import (
    GROUP,
    MOST,
    MOST_ADOPTED,
    READ,
    USER,
    WRITE,
    Access,
    FolderShare,
    SharedFolder,
    ShareKey,
    ShareState,
    check_share,
    folder_name,
    shared_with,
)
from portal.core.interfaces.auth import Accounts
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.errors import (
    Conflict,
    DatabaseUnavailable,
    FolderShared,
    Forbidden,
    InvalidRequest,
    NotFound,
    PortalError,
    Unavailable,
)
from portal.services.files.files import Files, Json
from portal.store.shares import ShareStore

PARTLY = "share"
"""The code of a file server's refusal after which some files may have been changed."""


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
        except PortalError as error:
            if error.code != PARTLY:
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
        except (Conflict, Forbidden) as error:
            if error.code != PARTLY:  # refused, so nothing has changed
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
        if change.get("running"):
            return self._store.of_owner(person.name, folder), change
        there = self._adopt(person, folder, found.get("shares"))
        rows = self._store.of_owner(person.name, folder)
        for share in rows:
            if share.state is not ShareState.GIVEN:
                with suppress(Conflict):  # it stays unfinished
                    self._finish(person, share, change)
        if any(row.state is ShareState.GIVEN and row.key not in there for row in rows):
            self.mine(person)
        return self._store.of_owner(person.name, folder), change

    def _adopt(
        self, person: Person, folder: str, listed: object, state: ShareState = ShareState.GIVEN
    ) -> set[ShareKey]:
        """List access that was given, changed or taken along without the portal, such as in a
        shell; returns all that the folder's own list has.
        """
        known = {share.key: share for share in self._store.of_owner(person.name, folder)}
        there = set()
        # What it sends is the user's own process' word.
        for one in _objects(listed):
            kind = GROUP if one.get("kind") == GROUP else USER
            key = ShareKey(person.name, folder, kind, str(one.get("name") or ""))
            access = WRITE if one.get("access") == WRITE else READ
            before = known.get(key)
            there.add(key)
            if before is None and not check_share(key):
                self._store.put(FolderShare(key, access, self._clock(), state), MOST)
            elif before and before.state is state and before.access != access:
                self._store.put(replace(before, access=access), MOST)
        return there

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
        """All that the user shares: as the file system has it, or as stored if that is away."""
        rows = self._store.of_owner(person.name)
        listed = [
            {"folder": quote(row.key.folder, safe=""), "kind": row.key.kind, "name": row.key.name}
            for row in rows
        ]
        try:
            found = self._files.ask(person, "POST", "shares", body={"listed": listed})
            self._compare(person, rows, found)
            return self._store.of_owner(person.name)
        except PortalError:
            return rows

    def _compare(self, person: Person, rows: Sequence[FolderShare], found: Json) -> None:
        """Forget what has ended without the portal, and list what has begun so."""
        for row in _at(rows, found.get("missing")):
            self._store.remove_unchanged(row)
        for row in _at(rows, found.get("ended")):
            if row.state is ShareState.GIVEN:
                self._store.remove_unchanged(row)
        by_folder: dict[str, list[Json]] = {}
        for one in _objects(found.get("shares"))[:MOST_ADOPTED]:
            if (folder := folder_name(one.get("folder"))) is not None:
                by_folder.setdefault(folder, []).append(one)
        known = {row.key.folder for row in rows}
        for folder, shares in by_folder.items():
            if folder in known or len(rows) < MOST_ADOPTED:
                self._adopt(person, folder, shares)

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
        location = canonical(location)
        try:
            entry = self._files.rename(person, location, name)
        except FolderShared as error:
            return self._rename_shared(person, location, error.folders[0], name)
        folder = _folder(location)
        if folder not in (None, name) and self._store.of_owner(person.name, folder):
            with self.while_renaming(person, str(folder), name):
                pass  # shares with names of which there is no account
        return entry

    def _rename_shared(self, person: Person, location: str, folder: str, name: str) -> Entry:
        shares, _ = self.of_folder(person, folder)
        if any(share.state is not ShareState.GIVEN for share in shares):
            raise Conflict("Who has access to this folder is being changed. Wait a moment.")
        with self.while_renaming(person, folder, name):
            return self._files.rename(person, location, name, shares_follow=True)

    def operate(self, person: Person, order: Json) -> Operation:
        """As Files.operate; shares of storage folders end before these are moved, deleted or
        replaced.
        """
        order = _canonical(order)
        try:
            return self._files.operate(person, order)
        except FolderShared as error:
            folders = error.folders
        for folder in folders:
            self.end_all(person, folder)
        return self._files.operate(person, order)

    @contextmanager
    def while_renaming(self, person: Person, folder: str, to: str) -> Iterator[None]:
        """Take a folder's shares along when it gets another name.

        Meanwhile both names are listed, so that a crash leaves no access that is not.
        """
        copied = self._store.copy(person.name, folder, to, self._clock())
        try:
            yield
        except Unavailable:
            raise  # unknown which name it has: both stay listed
        except BaseException:
            for share in copied:
                self._store.remove_unchanged(share)
            raise
        self._store.remove_all(person.name, folder)

    def end_all(self, person: Person, folder: str) -> None:
        """End a folder's shares, before it is deleted; raises Conflict or Unavailable."""
        found = self._files.ask(person, "GET", "shares", _location(folder))
        self._adopt(person, folder, found.get("shares"))
        self._adopt(person, folder, found.get("ending"), ShareState.ENDING)
        for share in self._store.of_owner(person.name, folder):
            if not self.take_back(person, share.key):
                raise Conflict("Access of others is being taken back. Try again in a moment.")


def _location(folder: str) -> str:
    return f"storage/{quote(folder, safe='')}"


def _folder(location: str) -> str | None:
    """The storage folder of a canonical location; None if it is something else."""
    root, _, name = location.partition("/")
    return unquote(name) if root == "storage" and name and "/" not in name else None


def _canonical(order: Json) -> Json:
    """An order with its locations in their one spelling; raises InvalidRequest."""
    items, to = order.get("items"), order.get("to")
    changes: dict[str, Any] = {}
    if isinstance(items, list):
        changes["items"] = [
            canonical(item, "items") if isinstance(item, str) else item for item in items
        ]
    if isinstance(to, str):
        changes["to"] = canonical(to, "to")
    return {**order, **changes}


def _objects(found: object) -> list[Json]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _at(rows: Sequence[FolderShare], numbers: object) -> list[FolderShare]:
    """The rows at the places that a file server names."""
    places = numbers if isinstance(numbers, list) else []
    return [rows[n] for n in places if isinstance(n, int) and 0 <= n < len(rows)]


def _words(key: ShareKey) -> str:
    return f"{key.folder} with the {key.kind} {key.name}"
