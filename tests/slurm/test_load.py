"""The cost of many open pages: Slurm's load must not depend on the number of viewers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.batch_jobs import sbatch, wait_for_job
from tests.support.client import Api, Browser, http_session
from tests.support.cluster import Cluster
from tests.support.slurm_settings import QUERY_TOLERANCE, query_count

SECONDS = 30.0
"""A multiple of the worker's polling intervals, so that each window contains the same queries."""
TABS = 20
"""Of each page. They share a login, which has few of the portal's threads, and a busy machine."""
POLL = 2.0
"""Polling interval of an open page."""
LOOKS = 10.0
"""Interval at which the page of a job asks what it uses."""
RARE = 38
"""Queries per window that are made rarely, every ten seconds: nodes, partitions, and limits, whose
readings are a query each: configuration, partitions, nodes, reservations, used minutes."""


def _poll_with(
    tabs: int, pages: list[str], cluster: Cluster, browser: Browser
) -> tuple[int, Counter[int]]:
    """Keep each page open in so many tabs: (Slurm's RPCs meanwhile, the answers by status)."""
    answers: Counter[int] = Counter()
    stop = time.monotonic() + SECONDS
    before = query_count(cluster)

    def tab(page: str, number: int) -> None:
        http, etag, looks = http_session(), "", 0.0
        http.cookies.update(browser.http.cookies)
        time.sleep(POLL * number / tabs)
        while time.monotonic() < stop:
            begun = time.monotonic()
            answer = http.get(f"{cluster.url}{page}", headers={"If-None-Match": etag}, timeout=30)
            etag = answer.headers.get("ETag", etag)
            answers[answer.status_code] += 1
            if page.endswith("/now") and begun >= looks:  # what the job uses, as detail.js asks
                looks = begun + LOOKS
                use = page.removesuffix("/now") + "/usage"
                assert http.get(cluster.url + use, timeout=30).status_code == 200
            time.sleep(max(POLL - (time.monotonic() - begun), 0))

    each = [(page, number) for page in pages for number in range(tabs)]
    threads = [threading.Thread(target=tab, args=one) for one in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return query_count(cluster) - before, answers


@pytest.fixture
def job(cluster: Cluster, alice: Api) -> Iterator[str]:
    """A running batch job, of which the portal knows everything."""
    number = sbatch(cluster, "alice", "sleep 600")
    wait_for_job(alice, number, "RUNNING")
    yield number
    cluster.shell("login", f"scancel {number}", user="alice", check=False)


def test_open_pages_cost_slurm_nothing(cluster: Cluster, alice: Api, job: str) -> None:
    alice.running()
    pages = ["/sessions/rows", "/jobs/rows?state=running", f"/jobs/{job}/now"]
    browser = Browser(cluster, "alice")
    with_one, _ = _poll_with(1, pages, cluster, browser)
    with_many, answers = _poll_with(TABS, pages, cluster, browser)
    print(f"RPCs in {SECONDS:g} s: {with_one} with one of each, {with_many} with {TABS}; {answers}")
    assert set(answers) <= {200, 204}
    wanted = TABS * len(pages) * SECONDS / POLL
    # A quarter of them, since four clusters share the machine; this is not about our speed.
    assert answers.total() > wanted * 0.25, "the pages were not kept fresh"
    assert answers[204] > answers[200], "unchanged lists are sent repeatedly"
    assert abs(with_many - with_one) <= QUERY_TOLERANCE
    # squeue queries the partitions as well as the jobs; sstat, the job's steps.
    assert with_one <= 2 * SECONDS / POLL + RARE + SECONDS / LOOKS + QUERY_TOLERANCE
