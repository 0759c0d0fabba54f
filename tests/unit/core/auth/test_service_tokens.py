"""For whom a service's token may act."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from portal.core.account_names import AccountNames
from portal.core.auth.accounts import Identity, read_uid
from portal.core.auth.service_tokens import MAX_LISTED, ServiceToken, problems, refusal

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
TOKEN = ServiceToken("h", "i", "hub", ("bob",), ("research",), NOON, None, NOON)


@pytest.mark.parametrize(
    ("user", "identity", "text"),
    [
        ("alice", Identity(1001, frozenset({"research"})), ""),
        ("bob", Identity(1002, frozenset()), ""),
        ("carol", Identity(1003, frozenset({"x"})), "The service token hub may not act for carol."),
        ("bob", None, "The login node has no account bob that may log in."),
        (
            "root",
            Identity(0, frozenset({"research"})),
            "root is a system account, for which no service may act.",
        ),
        (
            "bob",
            Identity(999, frozenset()),
            "bob is a system account, for which no service may act.",
        ),
    ],
)
def test_whom_it_may_act_for(user: str, identity: Identity | None, text: str) -> None:
    assert refusal(TOKEN, user, identity, 1000) == text


@pytest.mark.parametrize(
    ("name", "users", "groups", "fields"),
    [
        ("hub", ["alice"], [], []),
        ("hub", [], ["domain users"], []),
        ("hub", [], [], ["users"]),
        ("", ["alice"], [], ["name"]),
        ("a\nb", ["alice"], [], ["name"]),
        ("hub", ["al ice", "b"], ["\x1b"], ["users", "groups"]),
        ("hub", ["alice"] * (MAX_LISTED + 1), [], ["users"]),
    ],
)
def test_what_is_wrong_with_a_new_one(
    name: str, users: list[str], groups: list[str], fields: list[str]
) -> None:
    assert [wrong.field for wrong in problems(name, users, groups, AccountNames())] == fields


@pytest.mark.parametrize(
    ("passwd", "uid"),
    [
        ("alice:x:1001:1001::/home/alice:/bin/bash\n", 1001),
        ("alice:x:1001:1001::/home/alice:/usr/sbin/nologin\n", None),
        ("bob:x:1001:1001::/home/alice:/bin/bash\n", None),
        ("alice:x:-1:1001::/home/alice:/bin/bash\n", None),
        ("", None),
    ],
)
def test_accounts_that_may_log_in_have_a_number(passwd: str, uid: int | None) -> None:
    assert read_uid("alice", passwd) == uid
