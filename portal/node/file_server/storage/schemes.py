"""The two kinds of access control lists, with the same operations on an open file."""

from __future__ import annotations

import os
import stat
import subprocess

from portal.node.file_server.errors import Refused
from portal.node.file_server.storage import nfs4_acl, posix_acl
from portal.node.file_server.storage.subjects import (
    GROUP,
    READ,
    USER,
    WRITE,
    Share,
    Subject,
    group_name,
    user_name,
)
from portal.node.file_server.storage.walk import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class Scheme(Protocol):
        """Changes lists of files that belong to this process's user; all raise OSError."""

        def shares(self, found: Found) -> list[Share]:
            """Who else has access to a folder."""

        def grant(self, found: Found, subject: Subject, access: str) -> None:
            """Give access to one file or folder, and to what is created in it later."""

        def subjects(self, found: Found) -> set[Subject]:
            """Who else has access to a folder, or would to what is created in it later."""

        def suspend(self, found: Found, subject: Subject) -> None:
            """Take back access to a folder itself, but not to what is created in it later: the
            mark of a change that is not complete."""

        def revoke(self, found: Found, subject: Subject) -> bool:
            """Take access back; returns whether there was any."""

        def let_pass(self, found: Found, subject: Subject) -> None:
            """Permit to traverse a folder, and nothing else."""

        def end_pass(self, found: Found, subject: Subject) -> None:
            """Take that back, and nothing else."""


_TAGS = {USER: posix_acl.USER, GROUP: posix_acl.GROUP}


class Posix:
    """POSIX access control lists."""

    def __init__(self, owner: int) -> None:
        self._owner = (posix_acl.USER, owner)

    def shares(self, found: Found) -> list[Share]:
        return self._listed(posix_acl.read_access(found.path, found.status))

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

    def subjects(self, found: Found) -> set[Subject]:
        default = posix_acl.read(found.path, posix_acl.DEFAULT)
        later = self._listed(default) if default else []
        return {share.subject for share in (*self.shares(found), *later)}

    def grant(self, found: Found, subject: Subject, access: str) -> None:
        entry = _entry(subject)
        if entry is None:
            return
        acl = posix_acl.read_access(found.path, found.status)
        wanted = posix_acl.READ | (posix_acl.WRITE if access == WRITE else 0)
        permissions = posix_acl.for_kind(wanted, found.status.st_mode, acl.owner)
        if found.is_folder:  # first, so that nothing is created meanwhile without it
            self._inherit(found, acl, entry, permissions)
        _change(found.path, acl, posix_acl.grant(acl, entry, permissions))

    def _inherit(
        self, found: Found, acl: posix_acl.Acl, entry: tuple[int, int], permissions: int
    ) -> None:
        known = posix_acl.read(found.path, posix_acl.DEFAULT)
        base = known or posix_acl.Acl(acl.owner, _unmasked(acl), acl.other)
        wanted = posix_acl.grant(base, entry, permissions)
        if permissions & posix_acl.WRITE:  # or else the owner could not delete what others create
            wanted = posix_acl.grant(wanted, self._owner, 7)
        if wanted != known:
            posix_acl.write(found.path, wanted, posix_acl.DEFAULT)

    def suspend(self, found: Found, subject: Subject) -> None:
        entry = _listed_entry(subject)
        if entry is not None:
            acl = posix_acl.read_access(found.path, found.status)
            _change(found.path, acl, self._without(acl, entry))

    def revoke(self, found: Found, subject: Subject) -> bool:
        entry = _listed_entry(subject)
        if entry is None:
            return False
        acl = posix_acl.read_access(found.path, found.status)
        _change(found.path, acl, self._without(acl, entry))
        known = posix_acl.read(found.path, posix_acl.DEFAULT) if found.is_folder else None
        if known is None or entry not in known.named:
            return entry in acl.named
        rest = self._without(known, entry)
        if rest.named or (rest.group, rest.other) != (_unmasked(acl), acl.other):
            posix_acl.write(found.path, rest, posix_acl.DEFAULT)
        else:  # as it was before the first share
            posix_acl.remove_default(found.path)
        return True

    def _without(self, acl: posix_acl.Acl, entry: tuple[int, int]) -> posix_acl.Acl:
        rest = posix_acl.revoke(acl, entry)
        if entry in acl.named and set(rest.named) == {self._owner}:
            return posix_acl.revoke(rest, self._owner)
        return rest

    def let_pass(self, found: Found, subject: Subject) -> None:
        entry = _entry(subject)
        acl = posix_acl.read_access(found.path, found.status)
        everybody = not acl.named and acl.group & acl.other & posix_acl.EXECUTE
        if entry is None or everybody:
            return
        effective = acl.named.get(entry, 0) & (7 if acl.mask is None else acl.mask)
        if not effective & posix_acl.EXECUTE:
            wanted = acl.named.get(entry, 0) | posix_acl.EXECUTE
            _change(found.path, acl, posix_acl.grant(acl, entry, wanted))

    def end_pass(self, found: Found, subject: Subject) -> None:
        entry = _listed_entry(subject)
        acl = posix_acl.read_access(found.path, found.status)
        if entry is not None and acl.named.get(entry) == posix_acl.EXECUTE:
            _change(found.path, acl, posix_acl.revoke(acl, entry))


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

    def shares(self, found: Found) -> list[Share]:
        known = nfs4_acl.read(found.path)
        return self._listed(ace for ace in known if not ace.flags & nfs4_acl.INHERIT_ONLY)

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

    def subjects(self, found: Found) -> set[Subject]:
        return {share.subject for share in self._listed(nfs4_acl.read(found.path))}

    def _name(self, kind: str, who: str) -> str:
        if who.isdigit():
            return user_name(int(who)) if kind == USER else group_name(int(who))
        # Names of accounts may contain "@" themselves, with or without the server's domain.
        name = who.rpartition("@")[0] or who
        known = Subject(kind, name).number is not None or Subject(kind, who).number is None
        return name if known else who

    def grant(self, found: Found, subject: Subject, access: str) -> None:
        if subject.number is None:
            return
        execute = bool(found.status.st_mode & stat.S_IXUSR)
        mask = nfs4_acl.mask_of(access == WRITE, found.is_folder, execute)
        self._allow(found, subject, mask, inherit=found.is_folder)
        if access == WRITE and found.is_folder:
            self._allow(found, Subject(USER, self._owner), mask, inherit=True)

    def suspend(self, found: Found, subject: Subject) -> None:
        known = nfs4_acl.read(found.path)
        group = subject.kind == GROUP
        rest = nfs4_acl.bequeath(known, self._names(subject), group=group)
        if rest != known:
            nfs4_acl.write(found.path, rest)

    def revoke(self, found: Found, subject: Subject) -> bool:
        changed = self._forbid(found, subject)
        if changed and not any(share.access == WRITE for share in self.shares(found)):
            self._forbid(found, Subject(USER, self._owner))
        return changed

    def let_pass(self, found: Found, subject: Subject) -> None:
        if subject.number is not None and not self._entries(found, subject):
            self._allow(found, subject, nfs4_acl.PASS, inherit=False)

    def end_pass(self, found: Found, subject: Subject) -> None:
        mine = self._entries(found, subject)
        if mine and all(not ace.mask & 1 for ace in mine):
            self._forbid(found, subject)

    def _entries(self, found: Found, subject: Subject) -> list[nfs4_acl.Ace]:
        group, names = subject.kind == GROUP, self._names(subject)
        known = nfs4_acl.read(found.path)
        return [ace for ace in known if nfs4_acl.is_of(ace, names, group=group)]

    def _names(self, subject: Subject) -> set[str]:
        names = {subject.name}
        if subject.number is not None:
            names.add(str(subject.number))
        return names | ({f"{subject.name}@{self._domain}"} if self._domain else set())

    def _allow(self, found: Found, subject: Subject, mask: int, *, inherit: bool) -> None:
        group, known = subject.kind == GROUP, nfs4_acl.read(found.path)
        rest = nfs4_acl.revoke(known, self._names(subject), group=group)
        who = f"{subject.name}@{self._domain}" if self._domain else str(subject.number)
        wanted = nfs4_acl.grant(rest, who, mask, group=group, inherit=inherit)
        if wanted != known:
            nfs4_acl.write(found.path, wanted)

    def _forbid(self, found: Found, subject: Subject) -> bool:
        known = nfs4_acl.read(found.path)
        rest = nfs4_acl.revoke(known, self._names(subject), group=subject.kind == GROUP)
        if rest != known:
            nfs4_acl.write(found.path, rest)
        return rest != known


def shared_with(found: Found) -> set[Subject]:
    """Who else has access to a folder, or would to what is created in it later; raises OSError,
    and Refused if its list is not understood.
    """
    try:
        return scheme_of(found).subjects(found)
    except ValueError:
        raise Refused(
            409, "share", "The access control list of this folder is not understood."
        ) from None
    except Refused:
        return set()  # there are no such lists


def scheme_of(found: Found) -> Scheme:
    """What a folder's file system has; raises Refused if it has none."""
    if posix_acl.is_supported(found.path):
        return Posix(os.geteuid())
    if nfs4_acl.is_supported(found.path):
        entries = nfs4_acl.read(found.path)
        return Nfs4(os.geteuid(), nfs4_acl.domain(entries) or _id_domain())
    raise Refused(
        409,
        "unsupported",
        "This folder is on a file system without access control lists, so it cannot be shared.",
    )


def _id_domain() -> str:
    """The domain of this host's NFSv4 names; "" if unknown."""
    try:
        done = subprocess.run(
            ["nfsidmap", "-d"], capture_output=True, timeout=5, check=False, text=True
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
