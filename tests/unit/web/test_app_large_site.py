"""Pages and API at a large centre's size: what a response reads and sends stays bounded.

10,000 nodes and people, 100,000 jobs and sessions. Bytes and statements are counted, not time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from flask import Flask
from sqlalchemy import event

from tests.support.fakes import World, make_world
from tests.support.large_site import NODES, PEOPLE, fill
from tests.unit.web.conftest import Api, Browser, api_clients, make_app, make_settings, with_gpus

SESSION, JOB = f"{0:031x}e", "40000001"
EXPORTS = {"/admin/journal.csv", "/admin/usage.csv"}
"""Files, which are streamed or have a maximum of their own."""
OTHERS = ("/login", "/static", "/site/", "/data/", "/livez", "/readyz", "/healthz")
"""Without lists, or for other programs."""
KILOBYTES = {
    "/admin/nodes": 60,
    "/sessions/rows": 200,
    "/sessions": 220,
    "/jobs/rows": 160,
    "/jobs": 180,
    "/admin/limits": 260,
    "/jobs/templates": 270,
    "/presets": 230,
    "/jobs/new/folders": 360,
    "/sessions/new/folders": 360,
    "/api/v1/sessions": 130,
    "/api/v1/admin/limits": 280,
    "/api/v1/admin/people/alice/logins": 230,
    "/api/v1/tokens": 230,
    "/api/v1/openapi.json": 160,
}
"""The most of these; of others 120."""
STATEMENTS = 45
ROWS = 520
"""Rows of tables, entries of lists and options of menus on a page."""


@dataclass
class Site:
    """The filled portal, and an administrator's and a user's clients."""

    world: World
    app: Flask
    browsers: dict[str, Browser]
    apis: dict[str, Api]

    def get(self, path: str, who: str) -> bytes:
        """The content of a response; a short one for what is not for this user."""
        if path.startswith("/api/v1"):
            answer = self.apis[who]("GET", path.removeprefix("/api/v1"))
        else:
            answer = self.browsers[who].get(path)
        assert answer.status_code < 500, (path, answer.text)
        return bytes(answer.data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A portal that is filled once for all tests of this module."""
    world = make_world(with_gpus(make_settings(tmp_path_factory.mktemp("large"))))
    fill(world)
    app = make_app(world)
    browsers = {name: Browser(app).log_in(name) for name in ("admin", "alice")}
    client = api_clients(app)
    return Site(world, app, browsers, {name: client(name) for name in ("admin", "alice")})


def _paths(app: Flask) -> Iterator[str]:
    for rule in app.url_map.iter_rules():
        path = rule.rule.replace("<session_id>", SESSION)
        path = path.replace("<environment>/<version>", "python/3.13")
        path = re.sub("<shown_id>|<job_id>", JOB, path).replace("people/<name>", "people/alice")
        if "GET" in (rule.methods or ()) and "<" not in path and not path.startswith(OTHERS):
            yield path
    yield from ("/admin/nodes?by=feature", "/admin/nodes?by=state&available=no")
    yield "/jobs?state=pending"


@pytest.mark.parametrize("who", ["admin", "alice"])
def test_responses_are_bounded(site: Site, who: str) -> None:
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    site.get("/sessions/new", who)  # reports that have changed are parsed once
    event.listen(site.world.engine, "before_cursor_execute", note)
    too_much = []
    for path in sorted(set(_paths(site.app)) - EXPORTS):
        statements.clear()
        content = site.get(path, who)
        most = KILOBYTES.get(path.partition("?")[0], 120)
        rows = len(re.findall(rb"<(?:tr|li|option)\b", content))
        if len(content) > most * 1000 or len(statements) > STATEMENTS or rows > ROWS:
            too_much.append((path, len(content) // 1000, rows, len(statements)))
    event.remove(site.world.engine, "before_cursor_execute", note)
    assert not too_much


def test_all_nodes_and_people_are_in_the_pages_of_the_api(site: Site) -> None:
    for path, key, number in (("nodes", "nodes", NODES), ("people", "people", PEOPLE)):
        names: set[str] = set()
        address = f"/admin/{path}?limit=500"
        while address:
            page = site.apis["admin"]("GET", address).json or {}
            names |= {entry["name"] for entry in page[key]}
            following = page["next_cursor"]
            address = f"/admin/{path}?limit=500&cursor={following}" if following else ""
        assert len(names) >= number
        assert len(names) <= number + 3  # and those who test
