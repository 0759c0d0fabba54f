"""NFSv4's lists by the same operations as POSIX's; extended attributes are kept in memory."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.file_server.access import nfs4_acl, posix_acl
from portal.node.file_server.access.nfs4_acl import (
    ALLOW,
    DIRECTORY_INHERIT,
    FILE_INHERIT,
)
from portal.node.file_server.access.schemes import Nfs4, scheme_of
from portal.node.file_server.access.subjects import GROUP, READ, USER, WRITE, Share, Subject
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.errors import Refused
from tests.support.acls import PLAIN_ACL, Attributes

BOB = Subject(USER, "nobody")
BOTH = FILE_INHERIT | DIRECTORY_INHERIT


@pytest.fixture
def attributes(monkeypatch: pytest.MonkeyPatch) -> Attributes:
    found = Attributes()
    monkeypatch.setattr(os, "getxattr", found.get)
    monkeypatch.setattr(os, "setxattr", found.set)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[OpenFile]:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield OpenFile(descriptor, (), os.fstat(descriptor))
    os.close(descriptor)


@pytest.fixture
def scheme(attributes: Attributes) -> Nfs4:
    assert attributes.supported
    return Nfs4(os.geteuid(), "example.org")


def test_a_share_is_given_changed_and_taken_back(scheme: Nfs4, folder: OpenFile) -> None:
    scheme.grant(folder, BOB, READ)
    first = nfs4_acl.read(folder.path)[0]
    assert (first.type, first.flags, first.who) == (ALLOW, BOTH, "nobody@example.org")
    assert scheme.shares(folder) == [Share(BOB, READ)]
    scheme.grant(folder, BOB, WRITE)
    assert scheme.shares(folder) == [Share(BOB, WRITE)]
    owners = [ace.who for ace in nfs4_acl.read(folder.path)]
    assert f"{pwd.getpwuid(os.geteuid()).pw_name}@example.org" in owners
    scheme.revoke(folder, BOB)
    assert nfs4_acl.encode(nfs4_acl.read(folder.path)) == PLAIN_ACL


def test_groups_have_entries_of_their_own(scheme: Nfs4, folder: OpenFile) -> None:
    group = Subject(GROUP, "daemon")
    scheme.grant(folder, group, READ)
    assert nfs4_acl.read(folder.path)[0].flags == BOTH | nfs4_acl.GROUP
    scheme.revoke(folder, Subject(USER, "daemon"))
    assert scheme.shares(folder) == [Share(group, READ)]


def test_passing_is_permitted_and_ended_alone(scheme: Nfs4, folder: OpenFile) -> None:
    scheme.let_pass(folder, BOB)
    assert scheme.shares(folder) == []
    assert nfs4_acl.read(folder.path)[0].mask == nfs4_acl.PASS
    scheme.end_pass(folder, BOB)
    assert nfs4_acl.encode(nfs4_acl.read(folder.path)) == PLAIN_ACL
    scheme.grant(folder, BOB, READ)
    scheme.end_pass(folder, BOB)
    assert scheme.shares(folder) == [Share(BOB, READ)]


def test_nobody_of_this_name_changes_nothing(scheme: Nfs4, folder: OpenFile) -> None:
    for subject in (Subject(USER, "n0-such"), Subject(GROUP, "n0-such")):
        scheme.grant(folder, subject, WRITE)
        scheme.let_pass(folder, subject)
    assert nfs4_acl.encode(nfs4_acl.read(folder.path)) == PLAIN_ACL


def test_without_a_domain_numbers_are_names(attributes: Attributes, folder: OpenFile) -> None:
    assert attributes.supported
    scheme = Nfs4(os.geteuid(), "")
    scheme.grant(folder, BOB, READ)
    assert nfs4_acl.read(folder.path)[0].who == str(BOB.number)
    assert scheme.shares(folder) == [Share(BOB, READ)]


def test_the_file_system_decides(attributes: Attributes, folder: OpenFile) -> None:
    assert isinstance(scheme_of(folder), Nfs4)
    attributes.supported = False
    assert not posix_acl.is_supported(folder.path)
    with pytest.raises(Refused, match="access control lists"):
        scheme_of(folder)


def test_names_may_contain_the_sign_of_domains(
    scheme: Nfs4, folder: OpenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name as "j.doe@example.org", which the server follows by its own domain or by none."""
    known = {"j.doe@example.org": 4001, "John.Doe": 4002}

    def look_up(name: str) -> pwd.struct_passwd:
        return pwd.struct_passwd((name, "x", known[name], known[name], "", "/", "/bin/sh"))

    monkeypatch.setattr(pwd, "getpwnam", look_up)
    for who in ("j.doe@example.org@example.org", "j.doe@example.org"):
        assert scheme._name(USER, who) == "j.doe@example.org"
    assert scheme._name(USER, "John.Doe@example.org") == "John.Doe"
    assert scheme._name(USER, "gone@example.org") == "gone"
    for name in known:
        scheme.grant(folder, Subject(USER, name), READ)
        assert Share(Subject(USER, name), READ) in scheme.shares(folder)
        scheme.revoke(folder, Subject(USER, name))
        assert scheme.shares(folder) == []
