"""A provider that answers in pieces, or nothing: those who need it read words, nobody else waits.

The threads are as many as gunicorn's in a process.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
from werkzeug.test import TestResponse

from tests.support.openid_provider import OK, Answer, slowly
from tests.unit.web.auth.conftest import Site
from tests.unit.web.conftest import PORTAL

THREADS = 8
WORDS = re.compile("University login does not answer|Too many people wait for University login")
DISCOVERY, KEYS, TOKEN = "/.well-known/openid-configuration", "/jwks", "/token"

IN_TIME = 10
"""Seconds for a log-in by password on a busy machine; it waited 16 and more for the provider."""
IN_WORDS = 15
"""The same for words that are due within ten seconds; there were none after 30."""
IN_PIECES = slowly(OK + b"{", b" ", 3)
HEADERS_IN_PIECES = slowly(b"HTTP/1.0 200 OK\r\n", b"X", 3)
SILENT = slowly(b"", b"", 1)


def timed(request: Callable[[], TestResponse]) -> tuple[float, TestResponse]:
    """Seconds that the request took of a thread, and the answer."""
    begun = time.monotonic()
    answer = request()
    return time.monotonic() - begun, answer


def callbacks(site: Site, count: int) -> list[Callable[[], TestResponse]]:
    """Visitors who come back from the provider."""
    found: list[Callable[[], TestResponse]] = []
    for _ in range(count):
        browser = site.browser()
        url = site.provider.authorize(site.begin(browser), preferred_username="alice")
        found.append(partial(site.back, browser, url))
    return found


@pytest.mark.parametrize("answer", [IN_PIECES, HEADERS_IN_PIECES, SILENT])
def test_a_log_in_by_password_does_not_wait_for_the_provider(site: Site, answer: Answer) -> None:
    visitors = callbacks(site, 20)
    site.provider.answers[TOKEN] = answer
    with ThreadPoolExecutor(THREADS) as pool:
        waiting = [pool.submit(timed, visitor) for visitor in visitors]
        assert seconds_of_a_password(site, pool) < IN_TIME
    assert all_in_time(waiting) == {503}
    assert site.provider.asked.count(TOKEN) == 2


def seconds_of_a_password(site: Site, pool: ThreadPoolExecutor) -> float:
    """Seconds until somebody has logged in by password, with the wait for a thread."""
    begun = time.monotonic()
    pool.submit(site.browser().log_in, "alice").result()
    return time.monotonic() - begun


def all_in_time(waiting: list[Future[tuple[float, TestResponse]]]) -> set[int]:
    """The statuses of the answers, which all have words."""
    done = [one.result() for one in waiting]
    assert max(seconds for seconds, _ in done) < IN_WORDS
    assert all(WORDS.search(answer.text) for _, answer in done)
    return {answer.status_code for _, answer in done}


def test_the_log_in_page_of_the_provider_has_words_in_time(site: Site) -> None:
    site.provider.answers[DISCOVERY] = IN_PIECES

    def start() -> TestResponse:
        return site.browser().get("/login/oidc")

    with ThreadPoolExecutor(THREADS) as pool:
        assert all_in_time([pool.submit(timed, start) for _ in range(THREADS)]) == {503}
    seconds, answer = timed(start)
    assert (seconds < IN_TIME, answer.status_code) == (True, 503)
    assert site.provider.asked == [DISCOVERY], "for ten seconds nobody asks again"


def test_the_back_channel_holds_no_threads(site: Site) -> None:
    site.provider.answers[KEYS] = IN_PIECES
    tokens = [site.provider.logout_token() for _ in range(THREADS)]
    client = site.app.test_client()

    def end(token: str) -> TestResponse:
        data = {"logout_token": token}
        return client.post("/login/oidc/back-channel", data=data, base_url=PORTAL)

    with ThreadPoolExecutor(THREADS) as pool:
        waiting = [pool.submit(timed, partial(end, token)) for token in tokens]
        assert seconds_of_a_password(site, pool) < IN_TIME
        assert all_in_time(waiting) == {503}
    assert site.provider.asked.count(KEYS) == 1
