"""NFSv4 access control lists, in the format of RFC 7530 (no such file system was at hand)."""

from __future__ import annotations

import pytest

from portal.node.file_server.access import nfs4_acl
from portal.node.file_server.access.nfs4_acl import Ace
from tests.support.acls import PLAIN_ACL


def test_a_list_is_read_and_written_the_same() -> None:
    found = nfs4_acl.parse(PLAIN_ACL)
    assert found == [
        Ace(0, 0, 0x1601BF, "OWNER@"),
        Ace(0, 0x40, 0x1200A9, "GROUP@"),
        Ace(0, 0, 0x1200A9, "EVERYONE@"),
    ]
    assert nfs4_acl.encode(found) == PLAIN_ACL


def test_a_share_comes_first_and_replaces_the_earlier_one() -> None:
    known = nfs4_acl.parse(PLAIN_ACL)
    read = nfs4_acl.grant(known, "bob@example.org", 0x1, group=False, inherit=True)
    both = nfs4_acl.revoke(read, {"bob@example.org"}, group=False)
    assert read[0] == Ace(0, 3, 0x1, "bob@example.org")
    assert read[1:] == known == both
    again = nfs4_acl.grant(read, "bob@example.org", 0x3, group=False, inherit=False)
    assert again == [Ace(0, 0, 0x3, "bob@example.org"), *known]


def test_the_domain_of_names_is_that_of_other_entries() -> None:
    known = nfs4_acl.parse(PLAIN_ACL)
    assert nfs4_acl.domain(known) == ""
    assert nfs4_acl.domain([*known, Ace(0, 0, 1, "carol@example.org")]) == "example.org"


def test_writing_in_a_folder_includes_deleting_in_it() -> None:
    assert nfs4_acl.mask_of(write_too=True, is_folder=True, execute=False) == 0x1201FF & ~0x40000
    assert nfs4_acl.mask_of(write_too=False, is_folder=False, execute=False) == 0x120089


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1", PLAIN_ACL[:-8], b"\xff\xff\xff\xff"])
def test_a_list_that_is_not_understood_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"NFSv4|cut off|too many"):
        nfs4_acl.parse(data)
