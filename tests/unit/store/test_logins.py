"""People who are logged in, in the database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlmodel import Session as Database

from portal.core.auth.people import PeopleQuery, PersonSort
from portal.store.logins import LoginStore
from portal.store.tables import LoginRow
from tests.support import fakes
from tests.unit.web.conftest import make_settings

NOW = datetime(2026, 11, 24, 18, tzinfo=UTC)
NAMES = ["a%b", "a_b", "axb", "bob", "eve"]


@pytest.fixture
def store(tmp_path: Path) -> LoginStore:
    """Five people with a browser and a token each, and one whose login has expired."""
    engine = fakes.fresh_database(make_settings(tmp_path).state)
    with Database(engine) as db:
        for name in (*NAMES, "expired"):
            for kind in ("browser", "token"):
                expires = NOW - timedelta(seconds=1) if name == "expired" else NOW
                db.add(
                    LoginRow(
                        hash=kind + name,
                        id=kind + name,
                        kind=kind,
                        user=name,
                        name="",
                        created=NOW,
                        used=NOW,
                        expires=expires,
                    )
                )
        db.commit()
    return LoginStore(engine)


def names(store: LoginStore, **filters: object) -> list[str]:
    """The names on one page."""
    page = store.people(PeopleQuery(**filters), NOW)  # type: ignore[arg-type]  # by name
    return [person.user for person in page.people]


@pytest.mark.parametrize("sort", list(PersonSort))
def test_each_is_on_one_page_also_if_others_log_out_meanwhile(
    store: LoginStore, sort: PersonSort
) -> None:
    order = sorted(NAMES, reverse=sort.descending)
    query = PeopleQuery(sort=sort, limit=2)
    first = store.people(query, NOW)
    assert [(row.user, row.browsers, row.tokens) for row in first.people] == [
        (name, 1, 1) for name in order[:2]
    ]
    store.revoke(order[1], NOW)
    second = store.people(query.model_copy(update={"cursor": first.following}), NOW)
    last = store.people(query.model_copy(update={"cursor": second.following}), NOW)
    assert [row.user for page in (second, last) for row in page.people] == order[2:]
    assert last.following is None
    back = store.people(query.model_copy(update={"cursor": second.previous}), NOW)
    assert [row.user for row in back.people] == order[:1]


def test_a_part_of_the_name_has_no_wildcards_and_no_case(store: LoginStore) -> None:
    assert names(store, name="%") == ["a%b"]
    assert names(store, name="_") == ["a_b"]
    assert names(store, name="\\") == []
    assert names(store, name="XB") == ["axb"]
    assert names(store, name="expired") == []
