"""The journal as a file: complete, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from portal.core.admin.audit import AuditEvent, csv_lines

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def rows(event: AuditEvent) -> list[list[str]]:
    """The file with one event, as read again."""
    return list(csv.reader("".join(csv_lines([event])).splitlines(keepends=True)))


def test_an_event_is_a_line() -> None:
    event = AuditEvent(time=NOON, who="alice", action="login", detail='a "b", c', address="::1")
    head, line = rows(event)
    assert head == ["time", "who", "action", "what", "detail", "target", "from"]
    assert line == [
        "2026-11-20T12:00:00+00:00",
        "alice",
        "login",
        "Logged in",
        'a "b", c',
        "",
        "::1",
    ]


@given(st.sampled_from("=+-@\t\r"), st.text(st.characters(codec="utf-8"), max_size=20))
def test_no_cell_is_a_formula(first: str, rest: str) -> None:
    event = AuditEvent(time=NOON, who="x", action="login", detail=first + rest)
    text = "".join(csv_lines([event]))
    assert f",'{first}" in text or f",\"'{first}" in text
