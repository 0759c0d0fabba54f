"""Runners' calls at a real HAProxy and a real gunicorn, whose threads for pages are occupied."""

from __future__ import annotations

import asyncio
import http.client
import shutil
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bench.centre.http import Answer, Client, Portal
from tests.support.cluster import wait_for
from tests.unit.web.front import Front, read, running_front
from tests.unit.web.gunicorn_site import HELD_PAGE, behind, held

pytestmark = [
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy"),
    pytest.mark.timeout(600),
]
SESSIONS = 1000


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    """A portal with the limits that sites have unless they set others."""
    with running_front(tmp_path, "ports") as running, behind(running):
        yield running


@contextmanager
def occupied(front: Front) -> Iterator[None]:
    """Send as many requests for pages as HAProxy passes on, and keep all of them unanswered."""
    pages: list[int] = []

    def load() -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", front.port, timeout=300)) as page:
            page.request("GET", HELD_PAGE, headers={"Host": f"localhost:{front.port}"})
            pages.append(read(page).status)

    number = front.web.requests_in_progress
    threads = [threading.Thread(target=load) for _ in range(number)]
    with held(front) as waiting:
        for thread in threads:
            thread.start()
        wait_for("occupied threads", lambda: waiting() >= front.web.threads)
        yield
        assert not pages
    for thread in threads:
        thread.join()
    assert pages == [200] * number


async def call(front: Front, calls: int) -> Counter[str]:
    """All sessions call so often; each keeps its connection until all others have an answer."""
    context = ssl.create_default_context(cafile=front.ca / "gateway_ca.pem")
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    portal = Portal(front.runners_port, "portal", "", context)
    runners = [Client(portal, f"127.0.1.{1 + number % 250}") for number in range(SESSIONS)]
    headers = {"Authorization": "Bearer x", "Slipway-Runner": "2"}
    answers: Counter[str] = Counter()

    async def report(runner: Client, number: int) -> Answer:
        path = f"/runner/v1/sessions/{number:032x}/usage"
        return await runner.send("POST", path, "{}", headers)

    for _ in range(calls):
        reports = [report(runner, number) for number, runner in enumerate(runners)]
        for answer in await asyncio.gather(*reports):
            known = "session_unknown" in answer.body
            answers[f"{answer.status} {'of the portal' if known else answer.body[:200]}"] += 1
    for runner in runners:
        runner.close()
    await asyncio.sleep(0.1)  # until the event loop has closed them
    return answers


def test_calls_of_a_thousand_sessions_are_answered_while_pages_wait(front: Front) -> None:
    """They shared the threads of pages, and 800 connections of which none was closed."""
    with occupied(front):
        answers = asyncio.run(call(front, 2))
    assert answers == {"404 of the portal": 2 * SESSIONS}
