"""`slipway check` says whether the worker runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.cli.checks.running import check_worker
from portal.core.monitoring import WORKER
from portal.errors import DatabaseUnavailable
from portal.store.heartbeats import HeartbeatStore

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Beats(HeartbeatStore):
    """Signs of life as given; None: the database does not answer."""

    def __init__(self, found: dict[str, datetime] | None) -> None:
        self.found = found

    def beat(self, name: str, now: datetime) -> None:
        """Nothing is stored here."""
        raise AssertionError(name)

    def beats(self) -> dict[str, datetime]:
        if self.found is None:
            raise DatabaseUnavailable
        return self.found


@pytest.mark.parametrize(
    ("found", "word", "text"),
    [
        ({WORKER: NOON - timedelta(seconds=2)}, "ok", "the worker: last sign of life 2 s ago"),
        ({WORKER: NOON - timedelta(hours=1)}, "WARNING", "sign of life is 3600 s old: nobody"),
        ({}, "WARNING", "has not run yet with this database"),
        (None, "MISSING", "database does not answer"),
    ],
)
def test_it_is_said(found: dict[str, datetime] | None, word: str, text: str) -> None:
    (finding,) = check_worker(Beats(found), NOON)
    assert finding.word == word
    assert text in finding.text
