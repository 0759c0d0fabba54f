"""The runners of the campaign report when the portal asks for it, as those in sessions do."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from bench.centre import people
from bench.centre.http import Answer, Portal
from bench.centre.people import Pace, Runner


@pytest.mark.parametrize(("body", "least", "most"), [('{"next": 30}', 27, 30), ("{}", 9, 10)])
def test_runners_report_when_the_portal_asks(
    monkeypatch: pytest.MonkeyPatch, body: str, least: float, most: float
) -> None:
    pauses: list[float] = []

    class Client:
        def __init__(self, *_: Any) -> None:
            pass

        async def send(self, *_: Any) -> Answer:
            return Answer(200, {}, body)

        def close(self) -> None:
            pass

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    now = [0.0]
    monkeypatch.setattr(people, "Client", Client)
    monkeypatch.setattr("asyncio.sleep", sleep)
    monkeypatch.setattr("bench.centre.people.time", SimpleNamespace(monotonic=lambda: now[0]))
    runner = Runner(Portal(1, "", "", None), "127.0.0.1", "0", "token", 10)
    asyncio.run(runner.run(120))
    assert pauses[1:]
    assert all(least <= pause <= most for pause in pauses[1:])


def test_pauses_are_those_of_the_pages() -> None:
    pace = Pace()
    pace.answered(0.03)
    assert pace.pause == 2
    for _ in range(3):
        pace.failed()
    assert pace.pause == 16
    pace.answered(0.03)
    assert pace.pause == 2
    pace.refused(20)
    pace.answered(0.03)
    assert pace.pause == 5
