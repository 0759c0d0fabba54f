"""How often a request asks the database: once for all that it needs, as far as possible."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest

from tests.fakes import World
from tests.unit.web.conftest import Browser, Runner

FORM = {"environment": "python", "version": "3.13", "cpus": "1", "memory_gb": "1"}
MOST = {
    "/sessions": 6,
    "/sessions/rows": 3,
    "/sessions/new": 6,
    "/sessions/{id}": 6,
    "/jobs": 6,
    "/jobs/rows": 3,
    "/jobs/new": 6,
    "/api/v1/sessions": 6,
}


def trace(world):
    from sqlalchemy import event

    out = []

    def note(connection):
        st = [f for f in traceback.extract_stack() if "/portal/" in f.filename]
        out.append(
            " < ".join(f"{f.filename.split('/portal/')[1]}:{f.name}" for f in reversed(st[-5:]))
        )

    event.listen(world.engine, "begin", note)
    return out


@pytest.mark.parametrize("path", MOST)
def test_pages(path: str, alice: Browser, world: World, launched: Callable[..., Runner]) -> None:
    runner = launched()
    path = path.format(id=runner.id if hasattr(runner, "id") else "")
    alice.get(path)
    out = trace(world)
    answer = alice.get(path)
    print(path, answer.status_code, len(out))
    print("\n".join(out))


def test_launch(alice: Browser, world: World) -> None:
    out = trace(world)
    answer = alice.post("/sessions", FORM)
    print("POST", answer.status_code, answer.headers.get("Location"), len(out))
    print("\n".join(out))
