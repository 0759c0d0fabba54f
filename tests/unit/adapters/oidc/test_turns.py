"""Two threads of a process wait for the provider, and no longer than eight seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from portal.adapters.oidc import turns as module
from portal.adapters.oidc.turns import AT_ONCE, Busy, Turns, seconds_left
from portal.adapters.ssh.per_user import ThreadBudget
from portal.errors import Unavailable


class Provider:
    """Is silent until `answer` is set."""

    def __init__(self) -> None:
        self.answer = threading.Event()
        self.asked = threading.Semaphore(0)

    def __call__(self) -> str:
        self.asked.release()
        assert self.answer.wait(30)
        return "answer"


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A silent provider."""
    made = Provider()
    yield made
    made.answer.set()


def test_work_has_a_result_or_its_exception() -> None:
    turns = Turns("It")
    assert turns.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        turns.run(lambda: 1 // 0)


def test_a_third_visitor_has_words_and_the_next_one_a_turn(provider: Provider) -> None:
    turns = Turns("It")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = [pool.submit(turns.run, provider) for _ in range(AT_ONCE)]
        for _ in waiting:
            provider.asked.acquire()
        begun = time.monotonic()
        with pytest.raises(Busy, match="Too many people wait for It"):
            turns.run(provider)
        assert time.monotonic() - begun < 5
        provider.answer.set()
        assert [one.result() for one in waiting] == ["answer"] * AT_ONCE
    assert turns.run(provider) == "answer"


def test_a_visitor_does_not_wait_for_work_without_end_and_its_place_stays_taken(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while a name is not resolved: threads must not pile up."""
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.1)
    turns = Turns("It")
    for _ in range(AT_ONCE):
        with pytest.raises(Unavailable, match=r"It does not answer\. Try again"):
            turns.run(provider)
    with pytest.raises(Busy):
        turns.run(provider)
    provider.answer.set()
    while True:
        try:
            assert turns.run(lambda: 7) == 7
        except Busy:
            continue
        break


def test_work_within_work_is_of_the_same_turn() -> None:
    turns = Turns("It")

    def nested(depth: int) -> float:
        return turns.run(lambda: nested(depth - 1)) if depth else seconds_left()

    def late() -> float:
        time.sleep(0.2)
        return nested(5)

    time_left = turns.run(late)
    assert 0 < time_left <= module.SECONDS - 0.2


def test_visitors_count_in_the_threads_of_the_process(provider: Provider) -> None:
    budget = ThreadBudget(4)
    turns = Turns("It", budget)
    with ExitStack() as held:
        for user in ("alice", "bob", "carol"):
            held.enter_context(budget.thread(user))
        pool = held.enter_context(ThreadPoolExecutor(1))
        waiting = pool.submit(turns.run, provider)
        provider.asked.acquire()
        with pytest.raises(Busy):
            turns.run(provider)
        provider.answer.set()
        assert waiting.result() == "answer"
