"""What lists share: orders, cursors and the parameters of their URLs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from portal.core.jobs.query import JobQuery, JobSort
from portal.core.listing import Cursor, Order, read_leniently
from portal.core.session.query import Sort

NOON = datetime(2026, 11, 20, 12, 0, 0, 5, tzinfo=UTC)
KEYS = {
    "submitted": NOON, "started": NOON, "ended": NOON, "cpus": 3, "memory": 600,
    "time_limit": 2**31 - 1, "priority": 2**32 - 1,
}  # fmt: skip


def place(sort: JobSort, key: object = None) -> Cursor[JobSort]:
    """A cursor in a list of jobs."""
    key = key or KEYS.get(sort.key, "x")
    return Cursor(sort, before=False, key=key, id="7")  # type: ignore[arg-type]


@pytest.mark.parametrize("sort", JobSort)
def test_a_cursor_of_every_order_survives_the_url(sort: JobSort) -> None:
    text = str(place(sort))
    assert Cursor.read(text, JobSort) == place(sort)
    assert JobQuery(sort=sort, cursor=text).place == place(sort)


@pytest.mark.parametrize(
    ("sort", "key"),
    [(JobSort.HIGHEST_PRIORITY, 2**63), (JobSort.LOWEST_PRIORITY, "7"),
     (JobSort.ENDED_LAST, "2026"), (JobSort.MOST_CPUS, 2**31), (JobSort.SHORTEST_LIMIT, 2**31),
     (JobSort.STATUS, 5), (JobSort.NAME, 5)],
)  # fmt: skip
def test_a_key_of_the_wrong_kind_is_refused(sort: JobSort, key: object) -> None:
    with pytest.raises(ValidationError) as caught:
        JobQuery(sort=sort, cursor=str(place(sort, key)))
    assert caught.value.errors()[0]["loc"] == ("cursor",)


@pytest.mark.parametrize("sort", [*JobSort, *Sort])
def test_every_order_has_its_reverse(sort: Order) -> None:
    assert sort.reversed.key == sort.key
    assert sort.reversed.descending is not sort.descending
    assert sort.reversed.reversed is sort


def test_invalid_parameters_of_a_page_are_ignored() -> None:
    values = {"state": "all", "q": " train ", "array": "x", "days": "0", "partition": "a\0"}
    assert read_leniently(JobQuery, values, limit=9) == JobQuery(q="train", limit=9)


def test_a_changed_list_begins_at_its_start() -> None:
    query = JobQuery(q="train", sort=JobSort.NAME, cursor=str(place(JobSort.NAME)))
    assert query.parameters(sort="-name") == {"q": "train", "sort": "-name"}
    assert query.parameters(cursor="abc") == {
        "q": "train",
        "sort": "name",
        "cursor": "abc",
    }


def test_a_search_has_at_most_eight_words() -> None:
    assert JobQuery(q="a b c d e f g h i j").words == list("abcdefgh")
    assert JobQuery().words == []
