"""Entries of passwd(5), whose comment fields users write themselves."""

from __future__ import annotations

import pytest

from portal.core.auth.accounts import Account, read_account, read_missing, read_uid

SEPARATORS = list("\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
"""What str.splitlines divides at beside the newline."""


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_comment_divides_no_entry(separator: str) -> None:
    """Such an account was none: its owner could not log in."""
    entry = f"alice:x:1001:1001:Alice{separator}Smith:/home/alice:/bin/bash\n"
    assert read_account(entry) == Account("alice", 1001)
    assert read_uid("alice", entry) == 1001
    assert read_missing({"alice"}, entry) == set()


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_comment_forges_no_entry(separator: str) -> None:
    """A directory may permit colons in it, which getent prints as they are."""
    entry = f"mallory:x:1002:1002:m{separator}alice:x:1002:1002::/:/bin/sh\n"
    assert read_uid("alice", entry) is None
    assert read_missing({"alice"}, entry) == {"alice"}
