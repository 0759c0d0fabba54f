"""Sharing of storage folders: rows in the database, and the file system's access control lists.

A row is stored before access is given, and deleted after access has been revoked: a crash leaves no
access that is not listed. A change that a crash has interrupted is completed when the share is next
read. The file server decides by its ACL whether a folder is shared, not by its name; it refuses to
move or delete a shared folder until the portal has updated the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
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
from portal.core.files.uses import FolderUse, own_folder, use_of
from portal.core.interfaces.auth import Accounts
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.core.session.session import Session
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
    """The storage folders that users share with each other."""

    def __init__(
        self,
        files: Files,
        store: ShareStore,
        accounts: Accounts,
        clock: Clock,
        record: RecordEvent,
        mounting: Callable[[str], list[Session]],
        *,
        check_names: bool,
    ) -> None:
        """`mounting`: SessionStore.mounting; `check_names`: the site's setting."""
        self._mounting = mounting
        self._check_names = check_names
        self._files = files
        self._store = store
        self._accounts = accounts
        self._clock = clock
        self._record = record

    def share(self, person: Person, key: ShareKey, access: Access) -> tuple[FolderShare, Json]:
        """Give a user or group access to an own folder, or change it.

        Returns the share, and the file server's report. Accepts names without an account or group,
        so that their existence is not disclosed, unless the site has names checked. Raises
        InvalidRequest, NotFound, Conflict or Unavailable (then the share is listed as unfinished).
        """
        if problems := check_share(key):
            raise InvalidRequest(problems)
        self._files.entry(person, _location(key.folder))
        before = self._store.get(key)
        share = FolderShare(key, access, before.created if before else self._clock())
        if not self._store.put(share, MOST):
            raise Conflict(f"A folder can be shared with up to {MOST} users and groups.")
        self._record(person.name, "folder.share", f"{_words(key)} ({access})")
        return self._give(person, share, before, must_exist=self._check_names)

    def _give(
        self,
        person: Person,
        share: FolderShare,
        before: FolderShare | None,
        *,
        must_exist: bool = False,
    ) -> tuple[FolderShare, Json]:
        key = share.key
        body = {
            "kind": key.kind,
            "name": key.name,
            "access": share.access,
            "must_exist": must_exist,
        }
        try:
            report = self._files.ask(person, "PUT", "shares", _location(key.folder), body=body)
        except (Unavailable, DatabaseUnavailable):
            raise  # its progress is unknown: it stays in the list
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
        """End a share; returns whether it has ended, False while a large folder is processed.

        Raises NotFound, Conflict or Unavailable (then it is listed as unfinished).
        """
        share = self._store.get(key)
        if share is None:
            raise NotFound("This folder is not shared so.")
        self._store.set_state(key, share.access, ShareState.ENDING)
        try:
            ended = self._end(person, key)
        except (Conflict, Forbidden) as error:
            if error.code != PARTLY:  # refused, so nothing has changed
                self._store.set_state(key, share.access, share.state)
            raise
        self._record(person.name, "folder.unshare", _words(key))
        return ended

    def _end(self, person: Person, key: ShareKey) -> bool:
        query = {"kind": key.kind, "name": key.name}
        try:
            report = self._files.ask(person, "DELETE", "shares", _location(key.folder), query)
        except NotFound:  # the folder is gone, and its ACL with it
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
        """An own folder's shares, and the running change, if any; completes interrupted changes.

        Raises NotFound, Conflict or Unavailable.
        """
        reply = self._files.ask(person, "GET", "shares", _location(folder))
        reported = reply.get("change")
        change: Json = reported if isinstance(reported, dict) else {}
        if change.get("running"):
            return self._store.of_owner(person.name, folder), change
        listed = self._adopt(person, folder, reply.get("shares"))
        rows = self._store.of_owner(person.name, folder)
        for share in rows:
            if share.state is not ShareState.GIVEN:
                with suppress(Conflict):  # it stays unfinished
                    self._finish(person, share, change)
        if any(row.state is ShareState.GIVEN and row.key not in listed for row in rows):
            self.mine(person)
        return self._store.of_owner(person.name, folder), change

    def _adopt(
        self, person: Person, folder: str, reported: object, state: ShareState = ShareState.GIVEN
    ) -> set[ShareKey]:
        """Store access that was given, changed or moved without the portal, as in a shell.

        Returns the keys of all shares in the folder's ACL.
        """
        stored = {share.key: share for share in self._store.of_owner(person.name, folder)}
        keys = set()
        # The report is from a process of the user: not trusted.
        for item in _objects(reported):
            kind = GROUP if item.get("kind") == GROUP else USER
            key = ShareKey(person.name, folder, kind, str(item.get("name") or ""))
            access = WRITE if item.get("access") == WRITE else READ
            before = stored.get(key)
            keys.add(key)
            if before is None and not check_share(key):
                self._store.put(FolderShare(key, access, self._clock(), state), MOST)
            elif before and before.state is state and before.access != access:
                self._store.put(replace(before, access=access), MOST)
        return keys

    def _finish(self, person: Person, share: FolderShare, change: Json) -> None:
        key, ends = share.key, share.state is ShareState.ENDING
        target = (key.kind, key.name, None if ends else share.access)
        is_same = (change.get("kind"), change.get("name"), change.get("access")) == target
        if not is_same or change.get("problem"):
            if ends:
                self._end(person, key)
            else:
                self._give(person, share, share)
        elif ends:
            self._store.remove(key)
        else:
            self._store.set_state(key, share.access, ShareState.GIVEN)

    def mine(self, person: Person) -> list[FolderShare]:
        """All shares by the user: as in the file system, or as stored if that does not answer."""
        rows = self._store.of_owner(person.name)
        listed = [
            {"folder": quote(row.key.folder, safe=""), "kind": row.key.kind, "name": row.key.name}
            for row in rows
        ]
        try:
            reply = self._files.ask(person, "POST", "shares", body={"listed": listed})
            self._compare(person, rows, reply)
            return self._store.of_owner(person.name)
        except PortalError:
            return rows

    def _compare(self, person: Person, rows: Sequence[FolderShare], reply: Json) -> None:
        """Remove and add the rows of shares that were ended or given without the portal."""
        for row in _at(rows, reply.get("missing")):
            self._store.remove_unchanged(row)
        for row in _at(rows, reply.get("ended")):
            if row.state is ShareState.GIVEN:
                self._store.remove_unchanged(row)
        by_folder: dict[str, list[Json]] = {}
        for item in _objects(reply.get("shares"))[:MOST_ADOPTED]:
            if (folder := folder_name(item.get("folder"))) is not None:
                by_folder.setdefault(folder, []).append(item)
        folders = {row.key.folder for row in rows}
        for folder, shares in by_folder.items():
            if folder in folders or len(rows) < MOST_ADOPTED:
                self._adopt(person, folder, shares)

    def with_me(self, person: Person) -> list[SharedFolder]:
        """Folders that others share with the user, by name or group; raises Unavailable.

        Of very many only some (ShareStore.with_user).
        """
        shares = self._store.with_user(person.name)
        groups: frozenset[str] = frozenset()
        if self._store.has_groups():
            groups = self._groups(person)
            shares += self._store.with_groups(groups)
        return shared_with(person.name, groups, shares)

    def permitted(self, person: Person, folders: Collection[tuple[str, str]]) -> list[SharedFolder]:
        """Those of these folders (owner and name) that are shared with the user, however many are;
        raises Unavailable.
        """
        shares = self._store.of_folders(folders)
        with_groups = any(share.key.kind == GROUP for share in shares)
        groups = self._groups(person) if with_groups else frozenset[str]()
        return shared_with(person.name, groups, shares)

    def _groups(self, person: Person) -> frozenset[str]:
        identity = self._accounts.identity(person.name)
        return identity.groups if identity else frozenset()

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
                pass  # shares with names without an account
        return entry

    def _rename_shared(self, person: Person, location: str, folder: str, name: str) -> Entry:
        shares, _ = self.of_folder(person, folder)
        if any(share.state is not ShareState.GIVEN for share in shares):
            raise Conflict("Who has access to this folder is being changed. Wait a moment.")
        with self.while_renaming(person, folder, name):
            return self._files.rename(person, location, name, shares_follow=True)

    def operate(self, person: Person, order: Json, *, end_shares: bool = False) -> Operation:
        """As Files.operate.

        `end_shares`: shares of storage folders end before these are moved, deleted or replaced.
        Without it, raises FolderShared, whose text names who would lose them.
        """
        order = _canonical(order)
        try:
            return self._files.operate(person, order)
        except FolderShared as error:
            folders = error.folders
        if not end_shares:
            raise self._refusal(person, folders)
        for folder in folders:
            self.end_all(person, folder)
        return self._files.operate(person, order)

    def _refusal(self, person: Person, folders: Sequence[str]) -> FolderShared:
        uses = [self._use(person, folder) for folder in folders]
        text = " ".join([*(use.text for use in uses), "Confirm that their access shall end."])
        error = FolderShared(text, folders)
        error.field = "end_shares"
        return error

    def uses(self, person: Person, location: str) -> FolderUse | None:
        """Who uses the user's own storage folder at a location, or the one that it is in.

        None for any other location. Raises NotFound, Conflict or Unavailable.
        """
        if (own := own_folder(canonical(location))) is None:
            return None
        folder, part = own
        return replace(self._use(person, folder), part=part)

    def _use(self, person: Person, folder: str) -> FolderUse:
        shares, _ = self.of_folder(person, folder)
        return use_of(folder, shares, self._mounting(person.name), person.name)

    @contextmanager
    def while_renaming(self, person: Person, folder: str, to: str) -> Iterator[None]:
        """Move a folder's shares while it is renamed.

        Meanwhile both names are listed, so that a crash leaves no unlisted access.
        """
        copied = self._store.copy(person.name, folder, to, self._clock())
        try:
            yield
        except Unavailable:
            raise  # its name is unknown: both stay listed
        except BaseException:
            for share in copied:
                self._store.remove_unchanged(share)
            raise
        self._store.remove_all(person.name, folder)

    def end_all(self, person: Person, folder: str) -> None:
        """End a folder's shares, before it is deleted; raises Conflict or Unavailable."""
        reply = self._files.ask(person, "GET", "shares", _location(folder))
        self._adopt(person, folder, reply.get("shares"))
        self._adopt(person, folder, reply.get("ending"), ShareState.ENDING)
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
    """An order with canonical locations; raises InvalidRequest."""
    items, to = order.get("items"), order.get("to")
    changes: dict[str, Any] = {}
    if isinstance(items, list):
        changes["items"] = [
            canonical(item, "items") if isinstance(item, str) else item for item in items
        ]
    if isinstance(to, str):
        changes["to"] = canonical(to, "to")
    return {**order, **changes}


def _objects(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _at(rows: Sequence[FolderShare], numbers: object) -> list[FolderShare]:
    """The rows at the indices in a file server's answer."""
    places = numbers if isinstance(numbers, list) else []
    return [rows[n] for n in places if isinstance(n, int) and 0 <= n < len(rows)]


def _words(key: ShareKey) -> str:
    return f"{key.folder} with the {key.kind} {key.name}"
