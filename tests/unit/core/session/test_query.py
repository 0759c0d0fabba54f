"""Queries of the list: parsed from URLs, and cursors."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from portal.core.listing import Cursor, read_leniently
from portal.core.session.query import ListQuery, Sort, count_tabs
from portal.core.session.session import State

NOON = datetime(2026, 11, 20, 12, 0, 0, 5, tzinfo=UTC)
KEYS = {"created": NOON, "started": NOON, "cpus": 3, "memory": 600}


def place(sort: Sort, **changes: object) -> Cursor[Sort]:
    """A cursor in a list with this order."""
    values = {"sort": sort, "before": False, "key": KEYS.get(sort.key, "x"), "id": "1", **changes}
    return Cursor(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("sort", Sort)
@pytest.mark.parametrize("before", [True, False])
def test_a_cursor_survives_formatting_and_parsing(sort: Sort, before: bool) -> None:
    cursor = place(sort, before=before)
    assert Cursor.read(str(cursor), Sort) == cursor
    assert ListQuery(sort=sort, cursor=str(cursor)).place == cursor


@pytest.mark.parametrize("sort", Sort)
def test_a_cursor_of_another_order_is_refused(sort: Sort) -> None:
    with pytest.raises(ValidationError) as caught:
        ListQuery(sort=sort.reversed, cursor=str(place(sort)))
    assert caught.value.errors()[0]["loc"] == ("cursor",)


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        (Sort.NEWEST, "2026"),
        (Sort.NEWEST, datetime(2026, 1, 1)),
        (Sort.STARTED_LAST, 5),
        (Sort.FEWEST_CPUS, True),
        (Sort.FEWEST_CPUS, 2**70),
        (Sort.NAME, 5),
        (Sort.NAME, "a\0"),
    ],
)
def test_a_key_of_the_wrong_kind_is_refused(sort: Sort, key: object) -> None:
    with pytest.raises(ValueError, match="not a cursor"):
        Cursor.read(str(place(sort, key=key)), Sort)


@given(st.one_of(st.text(max_size=40), st.binary(max_size=40).map(lambda b: b.hex())))
def test_arbitrary_text_is_no_cursor(text: str) -> None:
    with pytest.raises(ValueError, match="not a cursor"):
        Cursor.read(text, Sort)


@pytest.mark.parametrize(
    "cursor", ["x", "%%%", "YQ==", "é", "W10=", "bnVsbA==", "WzEsMiwzLDQsNV0="]
)
def test_a_wrong_cursor_is_named(cursor: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ListQuery(cursor=cursor)
    assert caught.value.errors()[0]["loc"] == ("cursor",)


@given(st.dictionaries(st.sampled_from([*ListQuery.model_fields, "new"]), st.text(max_size=20)))
def test_any_url_is_a_valid_query(values: dict[str, str]) -> None:
    query = read_leniently(ListQuery, values, limit=7)
    assert query.limit == 7
    assert query.cursor is None
    assert query.sort.value == values.get("sort", "").strip() or query.sort is Sort.NEWEST


def test_a_url_contains_only_non_default_values() -> None:
    assert ListQuery(state="running", limit=50).parameters() == {"state": "running"}
    cursor = str(place(Sort.NAME))
    query = ListQuery(q="a b", sort=Sort.NAME, cursor=cursor)
    assert query.parameters() == {"q": "a b", "sort": "name"}  # from the start
    assert query.parameters(cursor=cursor)["cursor"] == cursor
    assert query.parameters(q=None, state="other") == {"sort": "name", "state": "other"}


def test_each_state_is_counted_under_one_tab() -> None:
    assert count_tabs(dict.fromkeys(State, 1)) == {
        "running": 5,
        "finished": 1,
        "other": 1,
        "waiting": 2,
    }
