"""The two kinds of access control lists, with the same operations on an open file."""

from __future__ import annotations

import os
import stat
import subprocess

from portal.node.file_server.access import nfs4_acl, posix_acl
from portal.node.file_server.access.subjects import (
    GROUP,
    READ,
    USER,
    WRITE,
    Share,
    Subject,
    group_name,
    user_name,
)
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class Scheme(Protocol):
        """Access control lists of one kind, on files of this process's user; all raise OSError."""

        def shares(self, file: OpenFile) -> list[Share]:
            """Return the shares of a folder with other users and groups."""

        def grant(self, file: OpenFile, subject: Subject, access: str) -> None:
            """Give access to a file or folder, and to files that are created in it later."""

        def subjects(self, file: OpenFile) -> set[Subject]:
            """Return the others who have access to a folder, or to files created in it later."""

        def suspend(self, file: OpenFile, subject: Subject) -> None:
            """Take back access to a folder, but not to files that are created in it later.

            This marks a change that is not complete.
            """

        def revoke(self, file: OpenFile, subject: Subject) -> bool:
            """Take access back; returns whether there was any."""

        def let_pass(self, file: OpenFile, subject: Subject) -> None:
            """Permit a subject to traverse a folder."""

        def end_pass(self, file: OpenFile, subject: Subject) -> None:
            """End the permission to traverse a folder."""


_TAGS = {USER: posix_acl.USER, GROUP: posix_acl.GROUP}


class Posix:
    """POSIX access control lists."""

    def __init__(self, owner: int) -> None:
        self._owner = (posix_acl.USER, owner)

    def shares(self, file: OpenFile) -> list[Share]:
        return self._listed(posix_acl.read_access(file.path, file.status))

    def _listed(self, acl: posix_acl.Acl) -> list[Share]:
        listed = []
        for (tag, number), permissions in sorted(acl.named.items()):
            if (tag, number) == self._owner or not permissions & posix_acl.READ:
                continue
            kind, name = (
                (USER, user_name(number)) if tag == posix_acl.USER else (GROUP, group_name(number))
            )
            access = WRITE if permissions & posix_acl.WRITE else READ
            listed.append(Share(Subject(kind, name), access))
        return listed

    def subjects(self, file: OpenFile) -> set[Subject]:
        default = posix_acl.read(file.path, posix_acl.DEFAULT)
        later = self._listed(default) if default else []
        return {share.subject for share in (*self.shares(file), *later)}

    def grant(self, file: OpenFile, subject: Subject, access: str) -> None:
        entry = _entry(subject)
        if entry is None:
            return
        acl = posix_acl.read_access(file.path, file.status)
        requested = posix_acl.READ | (posix_acl.WRITE if access == WRITE else 0)
        permissions = posix_acl.for_kind(requested, file.status.st_mode, acl.owner)
        if file.is_folder:  # first, so that nothing is created meanwhile without it
            self._inherit(file, acl, entry, permissions)
        _change(file.path, acl, posix_acl.grant(acl, entry, permissions))

    def _inherit(
        self, file: OpenFile, acl: posix_acl.Acl, entry: tuple[int, int], permissions: int
    ) -> None:
        default = posix_acl.read(file.path, posix_acl.DEFAULT)
        base = default or posix_acl.Acl(acl.owner, _unmasked(acl), acl.other)
        new = posix_acl.grant(base, entry, permissions)
        if permissions & posix_acl.WRITE:  # otherwise the owner could not delete others' new files
            new = posix_acl.grant(new, self._owner, 7)
        if new != default:
            posix_acl.write(file.path, new, posix_acl.DEFAULT)

    def suspend(self, file: OpenFile, subject: Subject) -> None:
        entry = _listed_entry(subject)
        if entry is not None:
            acl = posix_acl.read_access(file.path, file.status)
            _change(file.path, acl, self._without(acl, entry))

    def revoke(self, file: OpenFile, subject: Subject) -> bool:
        entry = _listed_entry(subject)
        if entry is None:
            return False
        acl = posix_acl.read_access(file.path, file.status)
        _change(file.path, acl, self._without(acl, entry))
        default = posix_acl.read(file.path, posix_acl.DEFAULT) if file.is_folder else None
        if default is None or entry not in default.named:
            return entry in acl.named
        remaining = self._without(default, entry)
        if remaining.named or (remaining.group, remaining.other) != (_unmasked(acl), acl.other):
            posix_acl.write(file.path, remaining, posix_acl.DEFAULT)
        else:  # as it was before the first share
            posix_acl.remove_default(file.path)
        return True

    def _without(self, acl: posix_acl.Acl, entry: tuple[int, int]) -> posix_acl.Acl:
        remaining = posix_acl.revoke(acl, entry)
        if entry in acl.named and set(remaining.named) == {self._owner}:
            return posix_acl.revoke(remaining, self._owner)
        return remaining

    def let_pass(self, file: OpenFile, subject: Subject) -> None:
        entry = _entry(subject)
        acl = posix_acl.read_access(file.path, file.status)
        everybody = not acl.named and acl.group & acl.other & posix_acl.EXECUTE
        if entry is None or everybody:
            return
        effective = acl.named.get(entry, 0) & (7 if acl.mask is None else acl.mask)
        if not effective & posix_acl.EXECUTE:
            permissions = acl.named.get(entry, 0) | posix_acl.EXECUTE
            _change(file.path, acl, posix_acl.grant(acl, entry, permissions))

    def end_pass(self, file: OpenFile, subject: Subject) -> None:
        entry = _listed_entry(subject)
        acl = posix_acl.read_access(file.path, file.status)
        if entry is not None and acl.named.get(entry) == posix_acl.EXECUTE:
            _change(file.path, acl, posix_acl.revoke(acl, entry))


def _entry(subject: Subject) -> tuple[int, int] | None:
    number = subject.number
    return None if number is None else (_TAGS[subject.kind], number)


def _listed_entry(subject: Subject) -> tuple[int, int] | None:
    number = subject.listed_number
    return None if number is None else (_TAGS[subject.kind], number)


def _unmasked(acl: posix_acl.Acl) -> int:
    return acl.group if acl.mask is None else acl.group & acl.mask


def _change(path: str, old: posix_acl.Acl, new: posix_acl.Acl) -> None:
    if new != old:
        posix_acl.write(path, new)


class Nfs4:
    """NFSv4 access control lists."""

    def __init__(self, owner: int, domain: str) -> None:
        self._owner, self._domain = user_name(owner), domain

    def shares(self, file: OpenFile) -> list[Share]:
        entries = nfs4_acl.read(file.path)
        return self._listed(ace for ace in entries if not ace.flags & nfs4_acl.INHERIT_ONLY)

    def _listed(self, entries: Iterable[nfs4_acl.Ace]) -> list[Share]:
        listed = {}
        for ace in entries:
            special = ace.who.endswith("@")
            if ace.type != nfs4_acl.ALLOW or special or not ace.mask & 1:
                continue
            kind = GROUP if ace.flags & nfs4_acl.GROUP else USER
            subject = Subject(kind, self._name(kind, ace.who))
            access = WRITE if ace.mask & nfs4_acl.WRITE_DATA else READ
            if subject != Subject(USER, self._owner):
                listed[subject] = Share(subject, access)
        return list(listed.values())

    def subjects(self, file: OpenFile) -> set[Subject]:
        return {share.subject for share in self._listed(nfs4_acl.read(file.path))}

    def _name(self, kind: str, principal: str) -> str:
        if principal.isdigit():
            return user_name(int(principal)) if kind == USER else group_name(int(principal))
        # Names of accounts may contain "@" themselves, with or without the server's domain.
        name = principal.rpartition("@")[0] or principal
        exists = Subject(kind, name).number is not None or Subject(kind, principal).number is None
        return name if exists else principal

    def grant(self, file: OpenFile, subject: Subject, access: str) -> None:
        if subject.number is None:
            return
        execute = bool(file.status.st_mode & stat.S_IXUSR)
        mask = nfs4_acl.mask_of(access == WRITE, file.is_folder, execute)
        self._allow(file, subject, mask, inherit=file.is_folder)
        if access == WRITE and file.is_folder:
            self._allow(file, Subject(USER, self._owner), mask, inherit=True)

    def suspend(self, file: OpenFile, subject: Subject) -> None:
        entries = nfs4_acl.read(file.path)
        group = subject.kind == GROUP
        inherited = nfs4_acl.bequeath(entries, self._names(subject), group=group)
        if inherited != entries:
            nfs4_acl.write(file.path, inherited)

    def revoke(self, file: OpenFile, subject: Subject) -> bool:
        changed = self._forbid(file, subject)
        if changed and not any(share.access == WRITE for share in self.shares(file)):
            self._forbid(file, Subject(USER, self._owner))
        return changed

    def let_pass(self, file: OpenFile, subject: Subject) -> None:
        if subject.number is not None and not self._entries(file, subject):
            self._allow(file, subject, nfs4_acl.PASS, inherit=False)

    def end_pass(self, file: OpenFile, subject: Subject) -> None:
        mine = self._entries(file, subject)
        if mine and all(not ace.mask & 1 for ace in mine):
            self._forbid(file, subject)

    def _entries(self, file: OpenFile, subject: Subject) -> list[nfs4_acl.Ace]:
        group, names = subject.kind == GROUP, self._names(subject)
        entries = nfs4_acl.read(file.path)
        return [ace for ace in entries if nfs4_acl.is_of(ace, names, group=group)]

    def _names(self, subject: Subject) -> set[str]:
        names = {subject.name}
        if subject.number is not None:
            names.add(str(subject.number))
        return names | ({f"{subject.name}@{self._domain}"} if self._domain else set())

    def _allow(self, file: OpenFile, subject: Subject, mask: int, *, inherit: bool) -> None:
        group, entries = subject.kind == GROUP, nfs4_acl.read(file.path)
        others = nfs4_acl.revoke(entries, self._names(subject), group=group)
        principal = f"{subject.name}@{self._domain}" if self._domain else str(subject.number)
        new = nfs4_acl.grant(others, principal, mask, group=group, inherit=inherit)
        if new != entries:
            nfs4_acl.write(file.path, new)

    def _forbid(self, file: OpenFile, subject: Subject) -> bool:
        entries = nfs4_acl.read(file.path)
        others = nfs4_acl.revoke(entries, self._names(subject), group=subject.kind == GROUP)
        if others != entries:
            nfs4_acl.write(file.path, others)
        return others != entries


def shared_with(file: OpenFile) -> set[Subject]:
    """Return the others who have access to a folder, or to files created in it later.

    Raises OSError, and Refused if its access control list is not understood.
    """
    try:
        return scheme_of(file).subjects(file)
    except ValueError:
        raise Refused(
            409, "share", "The access control list of this folder is not understood."
        ) from None
    except Refused:
        return set()  # a file system without lists


def scheme_of(file: OpenFile) -> Scheme:
    """Return the kind of lists that a file's file system has; raises Refused if it has none."""
    if posix_acl.is_supported(file.path):
        return Posix(os.geteuid())
    if nfs4_acl.is_supported(file.path):
        entries = nfs4_acl.read(file.path)
        return Nfs4(os.geteuid(), nfs4_acl.domain(entries) or _id_domain())
    raise Refused(
        409,
        "unsupported",
        "This folder is on a file system without access control lists, so it cannot be shared.",
    )


def _id_domain() -> str:
    """The domain of this host's NFSv4 names; "" if unknown."""
    try:
        completed = subprocess.run(
            ["nfsidmap", "-d"], capture_output=True, timeout=5, check=False, text=True
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    return completed.stdout.strip() if completed.returncode == 0 else ""
