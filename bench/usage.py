"""A year's report of usage with 100,000 sessions, against the same report with 10,000.

    python -m bench.usage [--sessions 100000] [--people 400] [--rounds 5]

needs no cluster: it fills a SQLite database of its own, with sessions of a year and the apps that
were opened in them, and asks for the report of the page Usage by each of its groups.

Printed: processor seconds of one report, in both cases, and their ratio.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

from sqlalchemy import Engine, insert

from portal.core.admin.usage_report import (
    By,
    Unit,
    UsageQuery,
    grouped,
    spans_of,
    total_of,
    used_in,
)
from portal.store.engine import open_database, upgrade
from portal.store.tables import AuditRow, SessionRow
from portal.store.usage_report import UsageStore

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
YEAR = timedelta(days=365)
SMALL = 10
"""The smaller database has so many times fewer sessions."""
BATCH = 5000
ENVIRONMENTS = ("python", "r", "julia", "pytorch", "desktop", "matlab")
APPS = ("JupyterLab", "Terminal", "VS Code", "Desktop", "TensorBoard")
UNITS: tuple[Unit, ...] = ("month", "week")


def fill(engine: Engine, sessions: int, people: int) -> None:
    """Sessions of a year, most of them some hours long, and the apps opened in them."""
    chance = random.Random(1)  # the same sessions each time
    for start in range(0, sessions, BATCH):
        rows = [
            _session(n, sessions, people, chance)
            for n in range(start, min(start + BATCH, sessions))
        ]
        with engine.begin() as db:
            db.execute(insert(SessionRow), rows)
            db.execute(insert(AuditRow), list(_opened(rows, chance)))


def _session(number: int, sessions: int, people: int, chance: random.Random) -> dict[str, object]:
    started = NOW - YEAR * (1 - number / sessions)
    ended = started + timedelta(seconds=chance.randrange(300, 2 * 86400))
    over = ended < NOW
    return {
        "id": f"{number:032x}",
        "name": f"s{number}",
        "owner": f"user{chance.randrange(people)}",
        "environment": chance.choice(ENVIRONMENTS),
        "version": "1",
        "account": chance.choice(("", "", "physics", "chemistry", "maths")),
        "cpus": chance.choice((1, 2, 4, 8)),
        "memory_mb": 4096,
        "fgpu": chance.choice((None, None, 0.5)),
        "state": "FINISHED" if over else "RUNNING",
        "created": started,
        "submitted": started,
        "attempts": 1,
        "token_hash": "0" * 64,
        "started": started,
        "ended": ended if over else None,
    }


def _opened(rows: list[dict[str, object]], chance: random.Random) -> Iterator[dict[str, object]]:
    for row in rows:
        for app in chance.sample(APPS, chance.randrange(1, 3)):
            yield {
                "time": row["started"],
                "who": row["owner"],
                "action": "app.open",
                "target": row["id"],
                "detail": f"{app} of {row['name']}",
            }


def report(store: UsageStore, by: By, unit: Unit) -> float:
    """The work of one report without an account's names; returns its processor seconds."""
    begun = time.process_time()
    query = UsageQuery(unit=unit, by=by, first=(NOW - YEAR + timedelta(days=8)).date())
    spans = spans_of(query, NOW)
    used_in(spans, *store.flows(spans, None), NOW)
    end = min(spans[-1].end, NOW)
    shares = store.shares(by, spans[0].begin, end)
    once = store.shares("person", spans[0].begin, end) if by == "app" else shares
    grouped(shares, lambda share: share.key)
    assert total_of(once).sessions
    return time.process_time() - begun


def measure(folder: Path, sessions: int, people: int, rounds: int) -> dict[str, float]:
    """Seconds of each kind of report; the median of some."""
    url = f"sqlite:///{folder}/{sessions}.db"
    upgrade(url)
    engine = open_database(url)
    fill(engine, sessions, people)
    store = UsageStore(engine)
    found = {}
    for unit in UNITS:
        for by in get_args(By):
            report(store, by, unit)
            found[f"{unit}s, by {by}"] = statistics.median(
                report(store, by, unit) for _ in range(rounds)
            )
    engine.dispose()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--people", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        few = measure(place, options.sessions // SMALL, options.people, options.rounds)
        many = measure(place, options.sessions, options.people, options.rounds)
    sizes = f"{options.sessions // SMALL:>8} {options.sessions:>8}"
    print(f"{'processor seconds of a year':28} {sizes}   ratio")
    for title, seconds in few.items():
        print(f"{title:28} {seconds:8.3f} {many[title]:8.3f} {many[title] / seconds:7.1f}")


if __name__ == "__main__":
    main()
