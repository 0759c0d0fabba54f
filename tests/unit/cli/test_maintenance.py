"""`slipway maintenance`: how its end is read, and what the command says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from portal.cli.maintenance import read_until
from portal.errors import InvalidRequest

ZONE = timezone(timedelta(hours=2))
NOW = datetime(2026, 11, 24, 22, 30, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("23:00", datetime(2026, 11, 24, 23, tzinfo=ZONE)),
        ("6:00", datetime(2026, 11, 25, 6, tzinfo=ZONE)),
        ("22:30", datetime(2026, 11, 25, 22, 30, tzinfo=ZONE)),
        ("2026-11-26T18:00", datetime(2026, 11, 26, 18, tzinfo=ZONE)),
        ("2026-11-26 18:00", datetime(2026, 11, 26, 18, tzinfo=ZONE)),
        ("2026-11-26T18:00Z", datetime(2026, 11, 26, 18, tzinfo=UTC)),
    ],
)
def test_the_end_is_read(text: str, until: datetime) -> None:
    assert read_until(text, NOW) == until


@pytest.mark.parametrize("text", ["tomorrow", "25:00", "18", "", "2026-11-31T18:00"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_until(text, NOW)
    assert [error.field for error in caught.value.errors] == ["until"]
    assert "18:00 or 2026-11-24T18:00" in caught.value.text
