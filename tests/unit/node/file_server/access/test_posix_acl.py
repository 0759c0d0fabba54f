"""POSIX access control lists; the bytes are those that setfacl writes."""

from __future__ import annotations

import pytest

from portal.node.file_server.access import posix_acl
from portal.node.file_server.access.posix_acl import GROUP, USER, Acl, grant, of_mode, revoke

SETFACL = bytes.fromhex(
    "0200000001000600ffffffff02000400ea03000004000400ffffffff10000400ffffffff20000400ffffffff"
)
"""Of `setfacl -m u:1002:r` on a file with the mode 644."""


def test_what_setfacl_writes_is_read_and_written_the_same() -> None:
    acl = posix_acl.parse(SETFACL)
    assert acl == Acl(6, 4, 4, {(USER, 1002): 4}, mask=4)
    assert posix_acl.encode(acl) == SETFACL
    assert grant(of_mode(0o644), (USER, 1002), 4) == acl


def test_entries_are_in_the_order_of_the_kernel() -> None:
    acl = Acl(7, 5, 0, {(GROUP, 7): 1, (USER, 9): 5, (USER, 3): 4}, mask=5)
    tags = [posix_acl.encode(acl)[place] for place in range(4, 60, 8)]
    assert tags == [1, 2, 2, 4, 8, 16, 32]
    assert posix_acl.parse(posix_acl.encode(acl)) == acl


def test_taking_back_the_last_share_restores_the_permissions() -> None:
    shared = grant(of_mode(0o640), (USER, 1002), 6)
    assert shared.mask == 6
    assert revoke(shared, (USER, 1002)) == of_mode(0o640)


def test_a_share_gives_nobody_else_what_the_mask_held_back() -> None:
    private = Acl(6, 4, 0, {(USER, 1003): 6}, mask=0)  # chmod 600 after a share
    assert grant(private, (USER, 1002), 4) == Acl(
        6, 0, 0, {(USER, 1003): 0, (USER, 1002): 4}, mask=4
    )


@pytest.mark.parametrize("data", [b"", b"\2\0\0\0", SETFACL[:-1], b"\3" + SETFACL[1:]])
def test_a_list_that_is_not_understood_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="access control list"):
        posix_acl.parse(data)
