"""Alice's addresses used by bob: every page and operation responds as if nothing existed.

Row "bob on alice's addresses" of what was attacked and found solid; test_strangers.py tries the
operations of the OpenAPI document.
"""

from __future__ import annotations

import pytest
import requests

from tests.attack.conftest import LoggedIn
from tests.support.client import Api, Browser, Json

HERS = (
    ("GET", "/sessions/{session}/end"),
    ("GET", "/sessions/{session}/log"),
    ("GET", "/sessions/{session}/log/text"),
    ("GET", "/sessions/{session}/log/download"),
    ("GET", "/sessions/{session}/apps"),
    ("GET", "/sessions/{session}/apps/now"),
    ("GET", "/sessions/{session}/ssh"),
    ("GET", "/sessions/{session}/ssh/now"),
    ("GET", "/sessions/{session}/outcome"),
    ("GET", "/sessions/new?from={session}"),
    ("POST", "/sessions/{session}/relaunch"),
    ("POST", "/sessions/{session}/extend"),
    ("POST", "/sessions/{session}/keep"),
    ("POST", "/sessions/{session}/release"),
    ("POST", "/sessions/{session}/ssh"),
    ("POST", "/sessions/{session}/ssh/close"),
    ("POST", "/sessions/{session}/ssh/key"),
    ("POST", "/sessions/{session}/apps/jupyterlab/open"),
    ("POST", "/sessions/{session}/apps/jupyterlab/private"),
    ("POST", "/sessions/{session}/apps/jupyterlab/close"),
)
ADMINISTRATORS = (
    ("GET", "/admin/templates"),
    ("GET", "/admin/templates/new"),
    ("GET", "/admin/templates/small/edit"),
    ("GET", "/admin/templates/small/delete"),
    ("POST", "/admin/templates"),
    ("POST", "/admin/templates/small"),
    ("POST", "/admin/templates/small/delete"),
    ("POST", "/admin/templates/small/move"),
    ("GET", "/admin/images"),
    ("GET", "/admin/images/python/3.13"),
    ("POST", "/admin/images/python/3.13"),
    ("GET", "/admin/limits"),
    ("POST", "/admin/caps"),
    ("GET", "/admin/journal"),
)


@pytest.fixture(scope="module")
def his(logged_in: LoggedIn) -> Browser:
    """Bob's browser."""
    return logged_in("bob")


@pytest.fixture(scope="module")
def theirs(logged_in: LoggedIn) -> Browser:
    """The administrator's browser."""
    return logged_in("admin")


def _ask(browser: Browser, method: str, path: str) -> requests.Response:
    if method == "GET":
        return browser.get(path, allow_redirects=False)
    return browser.post(path, {"port": "10000", "minutes": "60"}, allow_redirects=False)


@pytest.mark.parametrize(("method", "path"), HERS)
def test_her_pages_are_not_found_for_him(
    his: Browser, session: Json, researcher: Api, method: str, path: str
) -> None:
    answer = _ask(his, method, path.format(session=session["id"]))
    assert answer.status_code == 404, answer.status_code
    nothing = "0" * 32
    other = _ask(his, method, path.format(session=nothing))
    assert other.status_code == 404
    assert answer.text.replace(session["id"], nothing) == other.text, (
        "the response differs from that for an unknown page"
    )
    assert session["name"] not in answer.text
    assert researcher.get(session["id"])["state"] == "RUNNING"


@pytest.mark.parametrize(("method", "path"), ADMINISTRATORS)
def test_administrators_pages_are_not_found_for_him(his: Browser, method: str, path: str) -> None:
    answer = _ask(his, method, path)
    assert answer.status_code in (403, 404), answer.status_code
    assert "alice" not in answer.text


def test_administrators_operations_are_not_found_for_him(bob: Api, admin: Api) -> None:
    """Every operation below /admin in the OpenAPI document."""
    found = 0
    for template, operations in admin.ask("GET", "/openapi.json")["paths"].items():
        if not template.startswith("/admin"):
            continue
        path = template.format(
            name="small", environment="python", version="3.13", login_id="0" * 16
        )
        for method in set(operations) - {"parameters"}:
            found += 1
            answer = bob(method.upper(), path, json={})
            assert answer.status_code in (403, 404), (method, path, answer.text)
    assert found >= 5


@pytest.mark.parametrize(
    "query", ["", "?owner=alice", "?q={name}", "?owner=*", "?state=running&owner=alice"]
)
def test_lists_contain_only_own_sessions(his: Browser, bob: Api, session: Json, query: str) -> None:
    query = query.format(name=session["name"])
    for path in ("/sessions", "/sessions/rows"):
        text = his.get(path + query).text
        assert session["id"] not in text, path
        assert f"/sessions/{session['id']}" not in text
    answer = bob("GET", f"/sessions{query}")
    assert session["id"] not in answer.text


def test_bulk_ending_ends_only_own_sessions(
    his: Browser, bob: Api, researcher: Api, session: Json
) -> None:
    assert his.post("/sessions/end", {"ids": session["id"]}).status_code == 404
    assert his.post("/sessions/end", {"ids": [session["id"], session["id"]]}).status_code == 404
    assert researcher.get(session["id"])["state"] == "RUNNING"


@pytest.mark.parametrize(
    "path",
    [
        "/sessions/{session}/apps/jupyterlab/open",
        "/sessions/{session}/relaunch",
        "/sessions/{session}/ssh",
        "/sessions/{session}/ssh/key",
    ],
)
def test_administrators_see_the_session_but_cannot_open_apps(
    theirs: Browser, researcher: Api, session: Json, path: str
) -> None:
    before = len(researcher.list())
    answer = _ask(theirs, "POST", path.format(session=session["id"]))
    assert answer.status_code in (403, 404), answer.status_code
    assert "PRIVATE KEY" not in answer.text
    assert len(researcher.list()) == before
