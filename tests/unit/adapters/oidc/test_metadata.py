"""The provider's documents: nobody waits for a provider that is away, or for another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from portal.adapters.oidc.client import SILENT_SECONDS
from portal.adapters.oidc.metadata import CACHE_SECONDS, Document
from portal.adapters.oidc.turns import AT_ONCE, Turns
from portal.errors import Unavailable


class Provider:
    """Answers at once, fails, or is silent until `answer` is set."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked = 0
        self.fails = False
        self.answer = threading.Event()
        self.answer.set()
        self.turns = Turns("It")
        self.document = Document(self.fetch, self.turns, lambda: self.now)

    def fetch(self) -> dict[str, Any]:
        self.asked += 1
        assert self.answer.wait(20)
        if self.fails:
            raise Unavailable("It does not answer.")
        return {"number": self.asked}

    def ask_in_background(self) -> threading.Thread:
        before = self.asked
        thread = threading.Thread(target=self.outcome)
        thread.start()
        while self.asked == before:
            time.sleep(0.001)
        return thread

    def outcome(self) -> int | None:
        """The document's number; None if it is not available."""
        try:
            return int(self.document.get()["number"])
        except Unavailable:
            return None


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.answer.set()


def test_a_document_is_kept_for_an_hour(provider: Provider) -> None:
    assert provider.outcome() == 1
    provider.now = CACHE_SECONDS - 1
    assert provider.outcome() == 1
    provider.now = CACHE_SECONDS + 1
    assert provider.outcome() == 2


def test_an_outage_does_not_take_it_away(provider: Provider) -> None:
    assert provider.outcome() == 1
    provider.now, provider.fails = CACHE_SECONDS + 1, True
    assert (provider.outcome(), provider.asked) == (1, 2)
    assert (provider.outcome(), provider.asked) == (1, 2), "for ten seconds"


def test_a_failed_renewal_is_tried_again_after_ten_seconds(provider: Provider) -> None:
    assert provider.outcome() == 1
    failed = CACHE_SECONDS + 1
    provider.now, provider.fails = failed, True
    assert (provider.outcome(), provider.asked) == (1, 2)
    provider.now = failed + SILENT_SECONDS - 1
    assert (provider.outcome(), provider.asked) == (1, 2)
    provider.now = failed + SILENT_SECONDS + 1
    assert (provider.outcome(), provider.asked) == (1, 3)
    provider.now, provider.fails = failed + 2 * SILENT_SECONDS + 2, False
    assert (provider.outcome(), provider.asked) == (4, 4)
    provider.now += CACHE_SECONDS - 1
    assert (provider.outcome(), provider.asked) == (4, 4)


def test_while_one_thread_asks_the_others_have_the_last_one(provider: Provider) -> None:
    assert provider.outcome() == 1
    provider.now = CACHE_SECONDS + 1
    provider.answer.clear()
    thread = provider.ask_in_background()
    begun = time.monotonic()
    assert (provider.outcome(), provider.asked) == (1, 2)
    assert time.monotonic() - begun < 5
    provider.answer.set()
    thread.join()
    assert (provider.outcome(), provider.asked) == (2, 2)


def test_nobody_waits_long_for_the_first_one(provider: Provider) -> None:
    provider.answer.clear()
    thread = provider.ask_in_background()
    begun = time.monotonic()
    assert provider.outcome() is None
    assert time.monotonic() - begun < 5
    provider.answer.set()
    thread.join()
    assert provider.outcome() == 1


def test_a_silent_provider_is_not_asked_by_each_thread_in_turn(provider: Provider) -> None:
    provider.fails = True
    assert [provider.outcome() for _ in range(3)] == [None] * 3
    assert provider.asked == 1
    provider.now, provider.fails = SILENT_SECONDS + 1, False
    assert provider.outcome() == 2


def test_without_a_free_turn_nothing_is_asked_and_nothing_has_failed(provider: Provider) -> None:
    free, begun = threading.Event(), threading.Semaphore(0)

    def hold() -> None:
        begun.release()
        assert free.wait(30)

    others = [threading.Thread(target=provider.turns.run, args=(hold,)) for _ in range(AT_ONCE)]
    for other in others:
        other.start()
        begun.acquire()
    assert (provider.outcome(), provider.asked) == (None, 0)
    free.set()
    for other in others:
        other.join()
    assert provider.outcome() == 1


def test_an_outage_does_not_end_with_an_exception_that_grows(provider: Provider) -> None:
    provider.fails = True
    errors = []
    for _ in range(3):
        with pytest.raises(Unavailable, match="It does not answer") as error:
            provider.document.get()
        errors.append(error.value)
    assert len({id(error) for error in errors}) == 3
