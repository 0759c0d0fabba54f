"""The cost of many open pages: Slurm's load must not depend on the number of viewers."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter

from tests.client import Api, Browser, http_session
from tests.cluster import Cluster

SECONDS = 30.0
"""The worker's longest polling interval, so that each window contains the same queries."""
POLL = 2.0
"""Polling interval of an open page."""
TOLERANCE = 8
"""Tolerated difference of queries per window: each poll makes two, and the phase is random."""
RARE = 16
"""Queries per window that are made rarely: nodes, partitions, limits."""


def _queries(cluster: Cluster) -> int:
    """The number of RPCs that slurmctld has received from the portal and its users."""
    text = cluster.run("ctl", "sdiag")
    by_user = text.split("Remote Procedure Call statistics by user", 1)[1].split("Pending RPC")[0]
    found = re.findall(r"^\s*(\w+)\s*\(\s*\d+\) count:(\d+)", by_user, re.MULTILINE)
    counts = {user: int(count) for user, count in found}
    assert counts["slipway"] > 0
    return sum(counts.get(user, 0) for user in ("slipway", "alice", "bob", "admin"))


def _poll_with(tabs: int, cluster: Cluster, browser: Browser) -> tuple[int, Counter[int]]:
    """Keep pages open for a while: (Slurm's RPCs meanwhile, the pages' responses by status)."""
    answers: Counter[int] = Counter()
    stop = time.monotonic() + SECONDS
    before = _queries(cluster)

    def tab(number: int) -> None:
        http, etag = http_session(), ""
        http.cookies.update(browser.http.cookies)
        time.sleep(POLL * number / tabs)
        while time.monotonic() < stop:
            begun = time.monotonic()
            address = f"{cluster.url}/sessions/rows"
            answer = http.get(address, headers={"If-None-Match": etag}, timeout=30)
            etag = answer.headers.get("ETag", etag)
            answers[answer.status_code] += 1
            time.sleep(max(POLL - (time.monotonic() - begun), 0))

    threads = [threading.Thread(target=tab, args=(number,)) for number in range(tabs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _queries(cluster) - before, answers


def test_open_pages_cost_slurm_nothing(cluster: Cluster, alice: Api) -> None:
    alice.running()
    browser = Browser(cluster, "alice")
    with_one, _ = _poll_with(1, cluster, browser)
    with_fifty, answers = _poll_with(50, cluster, browser)
    print(f"RPCs in {SECONDS:g} s: {with_one} with one page, {with_fifty} with fifty; {answers}")
    assert set(answers) <= {200, 204}
    assert answers.total() > 50 * SECONDS / POLL * 0.8, "the pages were not kept fresh"
    assert answers[204] > answers[200], "unchanged lists are sent repeatedly"
    assert abs(with_fifty - with_one) <= TOLERANCE
    # squeue queries the partitions as well as the jobs.
    assert with_one <= 2 * SECONDS / POLL + RARE + TOLERANCE
