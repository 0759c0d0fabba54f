"""The list with 10,000 sessions and 5,000 jobs in the queue, against the same list nearly empty.

    python -m bench.list [--sessions 10000] [--jobs 5000] [--rounds 60]

runs on the cluster that SLIPWAY_PROJECT and PORT name, or on the one of `make up`, and leaves it as
it was: the sessions (alice's, ended, their ids begin with "bench") are written into the database,
the jobs (bob's) are held, so that nothing runs. Use a cluster that is otherwise idle.

Printed: the duration of pages and API requests in both cases and their ratio; the RPCs that
slurmctld received in a minute in both; and the cost of one poll of the worker at that moment.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import requests

from tests.support.client import Api, Browser, login
from tests.support.cluster import Cluster, wait_for

MINUTE = 60.0
PORTAL = "/opt/venv/bin/python3"

FILL = """
import sys
from datetime import timedelta
from portal.store.engine import open_database
from portal.store.sessions import SessionStore
from portal.config import load_settings
from portal.core.session.session import Cause, Session, State
from portal.wiring import now

store = SessionStore(open_database(load_settings().state.database_url))
ENDS = [(State.FINISHED, Cause.FINISHED), (State.FAILED, Cause.OUT_OF_MEMORY)]
for start in range(0, int(sys.argv[1]), 500):
    made = []
    for number in range(start, min(start + 500, int(sys.argv[1]))):
        state, cause = ENDS[number % 3 == 0]
        created = now() - timedelta(minutes=number)
        made.append(Session(
            id=f"bench{number:027d}", name=f"bench{number:05d}", owner="alice",
            environment="python", version="3.13", cpus=1, memory_mb=600, partition="main",
            state=state, created=created, submitted=created, token_hash="0" * 64, job_id=str(10**8),
            node="n1", started=created, ready=created,
            ended=created + timedelta(minutes=9), cause=cause,
            end_text="It ended.", exit_code=0, cleaned=True))
    store.add(made, None, "", {})
"""
EMPTY = """
import sqlalchemy
from portal.store.engine import open_database
from portal.config import load_settings

with open_database(load_settings().state.database_url).begin() as database:
    database.execute(sqlalchemy.text("DELETE FROM session WHERE id LIKE 'bench%'"))
"""
LOOK = """
import json
import time
from portal.adapters.slurm import queue
from portal.config import load_settings
from portal.core.cluster.queue import queue_positions
from portal.core.cluster.usage import measure_usage
from portal.wiring import real_systems

def took(what):
    start = time.perf_counter()
    result = what()
    return result, time.perf_counter() - start

scheduler = real_systems(load_settings()).scheduler
scheduler.jobs()  # opens the connection
jobs, asked = took(scheduler.jobs)
reports = [job.report for job in jobs.values()]
text = scheduler._ask(queue.squeue_argv())
_, read = took(lambda: queue.squeue_parse(text))
_, placed = took(lambda: queue_positions(reports, reports[::100]))
_, added = took(lambda: measure_usage(reports, []))
print(json.dumps([len(jobs), asked, read, placed, added]))
"""
HOLD = """
cd /tmp && seq {jobs} | xargs -P 3 -I{{}} sbatch --quiet --hold --mem=10 --job-name=bench \\
    --output=/dev/null --wrap=true > /dev/null
"""


@dataclass(frozen=True)
class Times:
    """Durations of one kind of request, in milliseconds."""

    middle: float
    late: float
    """The 95th percentile."""


def measure(ask: Callable[[], requests.Response], rounds: int) -> Times:
    """Send the request repeatedly, one after the other; the first one is a warm-up."""
    taken = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        answer = ask()
        taken.append((time.perf_counter() - start) * 1000)
        assert answer.status_code in (200, 204), answer.text
    return Times(statistics.median(taken[1:]), statistics.quantiles(taken[1:], n=20)[-1])


class Bench:
    """One user's list, and the systems behind it."""

    def __init__(self, cluster: Cluster, rounds: int) -> None:
        self.cluster = cluster
        self.rounds = rounds
        self.browser = Browser(cluster, "alice")
        self.api = Api(cluster, "alice", login(cluster, "alice"))
        self._mark = ""
        self._far: dict[str, str] | None = None
        self.admin = Api(cluster, "admin", login(cluster, "admin"))

    def python(self, code: str, *argv: str) -> str:
        """Run Python code on the portal's machine, as the portal."""
        as_portal = ["setpriv", "--reuid=slipway", "--regid=slipway", "--init-groups"]
        return self.cluster.run("portal", *as_portal, PORTAL, "-", *argv, stdin=code, seconds=600)

    def requests_by_title(self) -> dict[str, Callable[[], requests.Response]]:
        """The measured requests."""
        measured: dict[str, Callable[[], requests.Response]] = {
            "page, running": lambda: self.browser.get("/sessions"),
            "page, finished": lambda: self.browser.get("/sessions?state=finished"),
            "rows, finished, new": lambda: self.browser.get("/sessions/rows?state=finished"),
            "rows, finished, by name": lambda: self.browser.get(
                "/sessions/rows?state=finished&sort=name"
            ),
            "rows, finished, search": lambda: self.browser.get(
                "/sessions/rows?state=finished&q=bench00042"
            ),
            "rows, finished, unchanged": self._unchanged,
            "rows, running, new": lambda: self.browser.get("/sessions/rows"),
            "API, 100 of all": lambda: self.api("GET", "/sessions"),
            "API, 100 of everybody's": lambda: self.admin("GET", "/sessions"),
            "API, 500 of all": lambda: self.api("GET", "/sessions", params={"limit": 500}),
            "API, the last page": lambda: self.api("GET", "/sessions", params=self._last()),
        }
        for name in self._searches():
            measured[f"API, {name}=bench00042"] = partial(
                self.api, "GET", "/sessions", params={name: "bench00042"}
            )
        return measured

    def _unchanged(self) -> requests.Response:
        mark = self._mark
        answer = self.browser.get("/sessions/rows?state=finished", headers={"If-None-Match": mark})
        self._mark = answer.headers.get("ETag", mark)
        return answer

    def _last(self) -> dict[str, str]:
        """The query of a page far behind, looked up once."""
        if self._far is None:
            position: dict[str, str] = {}
            while True:
                page = self.api.ask("GET", "/sessions", params={"limit": "500"} | position)
                if page["next_cursor"] is None:
                    break
                position = {"cursor": page["next_cursor"]}
            self._far = position
        return self._far

    def _searches(self) -> list[str]:
        """The list's search parameters, by the API's own document."""
        paths = self.api.ask("GET", "/openapi.json")["paths"]
        names = [p["name"] for p in paths["/sessions"]["get"].get("parameters", [])]
        return [name for name in names if name in ("q", "query", "search", "name")]

    def times(self) -> dict[str, Times]:
        """All durations, measured now."""
        self._far = None
        return {title: measure(ask, self.rounds) for title, ask in self.requests_by_title().items()}

    def queries(self) -> int:
        """The RPCs that slurmctld received in a minute with one page open."""
        before = self._rpcs()
        until = time.monotonic() + MINUTE
        while time.monotonic() < until:
            self.browser.get("/sessions/rows")
            time.sleep(2.0)
        return self._rpcs() - before

    def _rpcs(self) -> int:
        text = self.cluster.run("ctl", "sdiag")
        by_user = text.split("Remote Procedure Call statistics by user", 1)[1]
        return sum(
            int(count)
            for user, count in re.findall(r"^\s*(\w+)\s*\(\s*\d+\) count:(\d+)", by_user, re.M)
            if user == "slipway"
        )

    def poll_cost(self) -> str:
        """The cost of one poll of the worker."""
        jobs, *seconds = json.loads(self.python(LOOK))
        query, read, placed, added = (1000 * part for part in seconds)
        return (
            f"{jobs} jobs: squeue over SSH {query:.0f} ms, of which reading {read:.0f}; "
            f"places {placed:.0f}; bars {added:.0f}"
        )

    @contextmanager
    def full(self, sessions: int, jobs: int) -> Iterator[None]:
        """Many sessions and jobs, for a while."""
        try:
            self.python(FILL, str(sessions))
            script = HOLD.format(jobs=jobs)
            self.cluster.run("login", "sh", "-c", script, user="bob", seconds=900)
            yield
        finally:
            cancel = ["scancel", "--user=bob", "--name=bench"]
            self.cluster.run("login", *cancel, seconds=300)
            self.python(EMPTY)


def report(empty: dict[str, Times], full: dict[str, Times]) -> str:
    """The figures as text."""
    lines = [f"{'milliseconds':28} {'nearly empty':>15} {'full':>15}   ratio"]
    lines.append(f"{'':28} {'p50':>7} {'p95':>7} {'p50':>7} {'p95':>7}   of p95")
    for title, few in empty.items():
        many = full[title]
        figures = f"{few.middle:7.1f} {few.late:7.1f} {many.middle:7.1f} {many.late:7.1f}"
        lines.append(f"{title:28} {figures} {many.late / few.late:8.2f}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    bench = Bench(Cluster.from_environment(), options.rounds)
    before, few, first = bench.poll_cost(), bench.times(), bench.queries()
    with bench.full(options.sessions, options.jobs):
        wait_for("the worker's poll", lambda: bench.api.ask("GET", "/usage"), 30)
        after, many, second = bench.poll_cost(), bench.times(), bench.queries()
    print(f"{options.sessions} ended sessions, {options.jobs} held jobs, {options.rounds} rounds")
    print(report(few, many))
    print(f"RPCs of the portal in {MINUTE:g} s: {first} nearly empty, {second} full")
    print(f"one poll, nearly empty: {before}\none poll, full:         {after}")


if __name__ == "__main__":
    main()
