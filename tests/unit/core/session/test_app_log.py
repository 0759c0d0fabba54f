"""The lines of one app in a session's log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from portal.core.session.app_log import LONGEST, app_lines

LOG = (
    b"2026-01-31T10:00:00Z webapp: starting\n"
    b"2026-01-31T10:00:01Z [webapp] serving\n"
    b"2026-01-31T10:00:01Z [webapp2] another\n"
    b"[webapp] without a time\n"
    b"2026-01-31T10:00:02Z [terminal] [webapp] quoted\n"
    b"2026-01-31T10:00:03Z [webapp] \xff not UTF-8\n"
)


def test_only_its_own_lines_without_the_mark() -> None:
    lines, read = app_lines(LOG, "webapp")
    assert lines == (
        b"2026-01-31T10:00:01Z serving\nwithout a time\n2026-01-31T10:00:03Z \xff not UTF-8\n"
    )
    assert read == len(LOG)
    assert app_lines(LOG, "webap") == (b"", len(LOG))


def test_an_incomplete_line_is_left_unless_it_is_too_long() -> None:
    assert app_lines(b"[webapp] one\n[webapp] tw", "webapp") == (b"one\n", 13)
    assert app_lines(b"[webapp] tw", "webapp") == (b"", 0)
    assert app_lines(b"x" * (LONGEST + 1), "webapp") == (b"", LONGEST + 1)


@given(st.integers(0, len(LOG)))
def test_two_pieces_are_as_one(cut: int) -> None:
    first, read = app_lines(LOG[:cut], "webapp")
    second, _ = app_lines(LOG[read:], "webapp")
    assert first + second == app_lines(LOG, "webapp")[0]
