"""A database that can be read but not written: pages that read work, others say what happened.

`query_only` gives SQLite's own error at the first write; the same is tried on a disk that is full.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import event

from portal.errors import DatabaseFull
from portal.logs.throttle import LogThrottle
from portal.store import failures
from portal.web.app import create_app
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import PORTAL, Api, Browser, make_settings

TEXT = "could not be stored"


@contextmanager
def read_only(world: World) -> Iterator[None]:
    """Every connection refuses to write."""

    def refuse(connection: Any, *_: object) -> None:
        connection.execute("PRAGMA query_only=ON")

    def allow(connection: Any, *_: object) -> None:
        connection.execute("PRAGMA query_only=OFF")

    event.listen(world.engine, "checkout", refuse)
    event.listen(world.engine, "checkin", allow)
    try:
        yield
    finally:
        event.remove(world.engine, "checkout", refuse)
        event.remove(world.engine, "checkin", allow)


@pytest.fixture(autouse=True)
def loud(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other test has logged anything in this minute."""
    monkeypatch.setattr(failures, "_throttle", LogThrottle())


def pages(app: Flask, session: str) -> list[str]:
    """The addresses of all pages and resources that are read."""
    found = []
    for rule in app.url_map.iter_rules():
        path = rule.rule.replace("<session_id>", session)
        if "GET" in (rule.methods or set()) and "<" not in path:
            found.append(path)
    return sorted(found)


def test_everything_that_reads_works(
    app: Flask, world: World, alice: Browser, api: Callable[[str], Api], launched: Any
) -> None:
    session = launched().session.id
    world.worker.read_partitions()
    world.worker.poll()
    program = api("alice")
    world.clock.advance(minutes=5)  # each use of a login would be stored now
    app.testing = False
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    for result in (before, after):
        with read_only(world) if result is after else _nothing():
            for path in pages(app, session):
                if path.startswith("/api/v1"):
                    answer = program("GET", path.removeprefix("/api/v1"))
                else:
                    answer = alice.get(path)
                result[path] = answer.status_code
        world.clock.advance(minutes=5)
    assert len(before) > 50
    changed = {path: (before[path], after[path]) for path in before if before[path] != after[path]}
    assert changed == {}


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def test_what_cannot_be_stored_says_so(
    app: Flask, world: World, alice: Browser, api: Callable[[str], Api]
) -> None:
    program = api("alice")
    with read_only(world):
        answer = program(
            "POST",
            "/sessions",
            json={"environment": "python", "resources": {"cpus": 1, "memory": "600m"}},
        )
        assert answer.status_code == 507
        assert answer.get_json()["title"] == "Nothing can be stored"
        assert TEXT in answer.get_json()["detail"]
        assert re.fullmatch(r"[0-9a-f-]{36}", answer.get_json()["reference"])
        stranger = Browser(app)
        token = stranger.csrf()
        fields = {"csrf_token": token, "username": "alice", "password": "wonderland"}
        page = stranger.client.post("/login", data=fields, base_url=PORTAL)
        assert page.status_code == 507
        assert TEXT in page.text
    assert world.slurm.jobs == [], "nothing reached Slurm"
    assert alice.get("/sessions").status_code == 200


def test_one_line_a_minute_and_no_traceback(
    app: Flask, world: World, alice: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    with read_only(world):
        for _ in range(5):
            world.clock.advance(minutes=2)
            assert alice.get("/sessions").status_code == 200
            fields = {"username": "bob", "password": "builder"}
            assert Browser(app).post("/login", fields).status_code == 507
    errors = [one for one in caplog.records if one.levelno >= logging.ERROR]
    said = [one for one in errors if one.name == failures.log.name]
    assert [one.getMessage() for one in said] == [
        "the database: nothing can be stored (attempt to write a readonly database)"
    ]
    assert [one for one in errors if one.exc_info] == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    world = make_world(make_settings(small_disk))
    app = create_app(world.services)
    alice = Browser(app).log_in("alice")
    filler = small_disk / "filler"
    world.clock.advance(minutes=5)
    _fill(filler)
    for path in ("/sessions", "/jobs", "/help", "/account"):
        world.clock.advance(minutes=5)
        assert alice.get(path).status_code == 200, path
    store = world.services.administration._store
    with pytest.raises(DatabaseFull):  # its log may have room for some
        _repeat(
            lambda: store.add_events([world.services.administration.new_event("alice", "x" * 400)])
        )
    filler.unlink()
    world.services.administration.record("alice", "it recovers by itself")
    assert alice.get("/sessions").status_code in (200, 303)


def _fill(file: Path) -> None:
    with suppress(OSError), file.open("wb", buffering=0) as out:
        while True:
            out.write(bytes(4096))


def _repeat(action: Callable[[], object]) -> None:
    for _ in range(5000):
        action()
