"""HTML in everything that users, apps and URLs can supply is shown as text.

Row "HTML everywhere" of what was attacked and found solid.
"""

from __future__ import annotations

import html
from collections.abc import Iterator

import pytest

from tests.attack.conftest import LoggedIn
from tests.support.client import Api, Browser, Json, Visitor, http_session
from tests.support.cluster import Cluster, wait_for

MARK = "m4711c0de"
EVIL = f"<img src=x onerror=alert('{MARK}')>"
QUOTES = f"\"'><script>/*{MARK}*/</script>"
RAW = ("<img src=x", f"<script>/*{MARK}")
PRINT = f"import os; print({EVIL!r}); print({QUOTES!r})"


@pytest.fixture(scope="module")
def his(logged_in: LoggedIn) -> Browser:
    """Bob's browser."""
    return logged_in("bob")


@pytest.fixture(scope="module")
def hostile(make_api: object, cluster: Cluster) -> Iterator[tuple[Api, Json]]:
    """Bob's session: HTML in its variables, its apps' prompts, its log and his folders."""
    api: Api = make_api("bob")  # type: ignore[operator]
    folder = f"a<b>{MARK}"
    cluster.run("login", "mkdir", "-p", f"/home/bob/storage/{folder}", user="bob")
    session = api.running(env={"EVIL": EVIL, "QUOTES": QUOTES})
    command = f"echo {_quoted(EVIL)}; echo {_quoted(QUOTES)}; sleep 2; exit 3"
    api(
        "POST", f"/sessions/{session['id']}/apps/webapp", json={"asked": command, "answer": command}
    )
    log = f"/home/bob/.slipway/logs/{session['id']}.log"
    cluster.run("login", "sh", "-c", f"cat >> {log}", user="bob", stdin=f"{EVIL}\n{QUOTES}\n")
    yield api, session
    api.clean()
    cluster.run("login", "rmdir", f"/home/bob/storage/{folder}", user="bob")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


PAGES = (
    "/sessions",
    "/sessions/rows",
    "/sessions/{id}/log",
    "/sessions/{id}/log/text",
    "/sessions/{id}/apps",
    "/sessions/{id}/apps/now",
    "/sessions/{id}/end",
    "/sessions/new",
    "/sessions/new?from={id}",
    "/sessions/new/folders",
    "/presets",
)
QUERIES = (
    "/sessions?q={evil}",
    "/sessions/rows?q={evil}",
    "/sessions?owner={evil}",
    "/sessions?state={evil}",
    "/sessions?sort={evil}",
    "/sessions?after={evil}",
    "/sessions?new={evil}",
    "/sessions/new?preset={evil}",
    "/sessions/new?from={evil}",
    "/sessions/new?environment={evil}",
    "/sessions/end?ids={evil}",
    "/sessions/{evil}/log",
    "/open/{evil}",
    "/login?next={evil}",
    "/login?next=/{evil}",
    "/{evil}",
)
ADMINS = (
    "/sessions?owner=bob",
    "/sessions/rows?owner=bob",
    "/sessions/{id}/log",
    "/sessions/{id}/log/text",
    "/admin/journal",
    "/admin/journal?q={evil}",
    "/admin/journal?user={evil}",
    "/admin/templates/{evil}/edit",
    "/admin/images/{evil}/{evil}",
)


def _is_harmless(browser: Browser, path: str) -> None:
    answer = browser.get(path, allow_redirects=False)
    assert answer.status_code < 500, path
    kind = answer.headers.get("Content-Type", "")
    assert answer.headers.get("X-Content-Type-Options") == "nosniff", path
    policy = answer.headers.get("Content-Security-Policy", "")
    assert "unsafe-inline" not in policy
    assert "default-src 'none'" in policy or answer.status_code == 404, policy
    if "html" in kind:
        for raw in RAW:
            assert raw not in answer.text, path
    location = answer.headers.get("Location", "")
    assert "<" not in location


def _filled(path: str, session: str, evil: str) -> str:
    return path.replace("{id}", session).replace("{evil}", evil)


@pytest.mark.parametrize("path", PAGES)
def test_values_of_a_session_are_shown_as_text(
    his: Browser, hostile: tuple[Api, Json], path: str
) -> None:
    _is_harmless(his, _filled(path, hostile[1]["id"], ""))


@pytest.mark.parametrize(
    "evil", ["%3Cimg%20src=x%20onerror=alert(1)%3E", "%22%27%3E%3Cscript%3E/*" + MARK]
)
@pytest.mark.parametrize("path", QUERIES)
def test_values_of_a_url_are_shown_as_text(his: Browser, path: str, evil: str) -> None:
    _is_harmless(his, _filled(path, "", evil))


@pytest.mark.parametrize("path", ADMINS)
def test_administrators_pages_show_it_as_text(
    logged_in: LoggedIn, hostile: tuple[Api, Json], path: str
) -> None:
    _is_harmless(logged_in("admin"), _filled(path, hostile[1]["id"], "%3Cimg%20src=x"))


def test_the_values_are_shown(his: Browser, hostile: tuple[Api, Json]) -> None:
    """Otherwise these tests would check pages that show nothing of it."""
    _, session = hostile

    def text() -> bool:
        log = his.get(f"/sessions/{session['id']}/log/text").text
        return html.escape(EVIL, quote=False)[:10] in log or EVIL[:10] in log

    wait_for("the log with HTML in it", text)
    folders = his.get("/sessions/new/folders").text + his.get("/sessions/new").text
    assert html.escape(f"a<b>{MARK}") in folders or MARK in folders
    again = his.get(f"/sessions/new?from={session['id']}").text
    assert MARK in again


def test_a_log_is_not_served_as_html(his: Browser, hostile: tuple[Api, Json]) -> None:
    answer = his.get(f"/sessions/{hostile[1]['id']}/log/download")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "attachment" in answer.headers["Content-Disposition"]
    assert EVIL in answer.text


@pytest.mark.parametrize(
    "field", ["name", "username", "environment", "version", "cpus", "memory", "env", "preset"]
)
def test_a_refused_form_repeats_its_values_as_text(his: Browser, field: str) -> None:
    path = "/login" if field == "username" else "/presets" if field == "preset" else "/sessions"
    fields = {"environment": "python", "cpus": "1", "memory": "600m", "name": "x"}
    answer = his.post(path, fields | {field: EVIL}, allow_redirects=False)
    assert answer.status_code < 500
    for raw in RAW:
        assert raw not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/%3Cimg%20src=x%3E",
        "/?a=%3Cimg%20src=x%3E",
        "/.slipway/status",
        "/.slipway/enter?ticket=%3Cimg%20src=x",
    ],
)
def test_the_gate_shows_nothing_without_a_login(hostile: tuple[Api, Json], path: str) -> None:
    api, session = hostile
    link = api.ask("POST", f"/sessions/{session['id']}/apps/terminal")
    visitor = Visitor(link["url"])
    answer = http_session().get(
        visitor.origin + path, headers={"Accept": "text/html"}, timeout=10, allow_redirects=False
    )
    assert answer.status_code in (303, 400, 401, 404)
    for secret in (*RAW, session["name"], session["id"], "bob"):
        assert secret not in answer.text
        assert secret not in answer.headers.get("Location", "")
