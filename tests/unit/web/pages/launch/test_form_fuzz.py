"""Arbitrary form data: either sessions are launched or nothing happens; no page fails."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from flask import Flask
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from portal.core.launch.names import session_name
from portal.core.launch.request import LaunchRequest, Resources
from portal.core.session.session import Session
from tests.support.fakes import CATALOG, World
from tests.unit.web.conftest import PORTAL, Browser

Fields = list[tuple[str, str]]

MULTI = "multipart/form-data; boundary=x"
FORM = "application/x-www-form-urlencoded"
GOOD = {
    "environment": "python",
    "version": "3.13",
    "resources.cpus": "1",
    "resources.memory": "600 MB",
    "confirmed": "yes",
}
NAMES = sorted(
    {name for name in LaunchRequest.model_fields if name != "resources"}
    | {f"resources.{name}" for name in Resources.model_fields}
)
FUZZ = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NASTY = st.sampled_from(
    [
        "",
        " ",
        "\x00",
        "x\x00y",
        "\r\n",
        "-1",
        "0",
        "1e9",
        "9" * 40,
        "٣",
        "½",
        "1.5 GB",
        "NaN",
        "null",
        "true",
        "[]",
        "{}",
        "[" * 3000,
        '{"A": 1}',
        '{"A": "\\ud800"}',
        '{"\\ud800": "x"}',
        "../../etc/passwd",
        "'; DROP TABLE session; --",
        "<script>alert(1)</script>",
        "{{ 7*7 }}",
        "\u202egnp.exe",
        "ë" * 40,
        "💥" * 64,
        "x" * 70000,
    ]
)
SENSIBLE = st.sampled_from(["python", "3.12", "main", "2", "1 GB", "64 MB", "work", '{"A": "b c"}'])
NAME = st.sampled_from(NAMES) | st.sampled_from(["key", "csrf_token", "resources", "a.b.c"])
FIELD = st.tuples(NAME | st.text(max_size=20), NASTY | SENSIBLE | st.text(max_size=50))


@st.composite
def changed(draw: st.DrawFn) -> Fields:
    """A valid form in which some fields are missing, duplicated, or new."""
    kept = [item for item in GOOD.items() if draw(st.integers(0, 7))]
    more = draw(st.lists(FIELD, max_size=3))
    return draw(st.permutations(kept + more))


def _send(alice: Browser, path: str, body: bytes, kind: str, htmx: bool) -> TestResponse:
    # The token is in a header, as sent by the page's script: any body passes the CSRF check.
    headers = {"X-CSRFToken": alice.csrf()} | ({"HX-Request": "true"} if htmx else {})
    return alice.client.post(
        path, data=body, content_type=kind, headers=headers, base_url=PORTAL, buffered=True
    )


def _new(world: World) -> list[Session]:
    """The sessions, which are deleted so that the next example begins without any."""
    found = world.store.live()
    for session in found:
        world.store.forget(session.batch or session.id, [session.id])
    return found


def _judge(answer: TestResponse, world: World) -> None:
    """Either sessions with a job each, or none and a page that shows the error."""
    jobs = [job.name for job in world.slurm.jobs]
    world.slurm.jobs.clear()
    made = _new(world)
    assert sorted(jobs) == sorted(session.id for session in made)
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert made == [], "an error, but also a session"
        assert re.search(r'id="error-|role="alert"|class="error|<h1', answer.text)
        return
    if "No folder is mounted" in answer.text:  # it asks for confirmation first
        assert made == []
        return
    assert 1 <= len(made) <= 20, "no error, and no session"
    for session in made:
        assert CATALOG.image(session.environment, session.version) is not None
        assert session_name(session.name) == session.name
        assert session.owner == "alice"
        assert session.cpus >= 1
        assert session.memory_mb >= 256
        assert (session.shared_memory_mb or 1) <= session.memory_mb


@FUZZ
@given(fields=changed(), htmx=st.booleans())
@example(fields=list(GOOD.items()), htmx=False)
@example(fields=[*GOOD.items(), ("env", '{"\\ud800": "x"}')], htmx=True)
@example(fields=[*GOOD.items(), ("env", '{"\\ud800": "x"}')], htmx=False)
@example(fields=[*GOOD.items(), ("key", "k" * 5000)], htmx=False)
def test_fields_launch_sessions_or_are_refused(
    fields: Fields, htmx: bool, world: World, alice: Browser
) -> None:
    body = urlencode(fields, errors="surrogatepass").encode()
    _judge(_send(alice, "/sessions", body, FORM, htmx), world)


PIECES = st.sampled_from(
    [
        b"environment=python",
        b"&",
        b"=",
        b"%",
        b"%zz",
        b"%00",
        b"%ff",
        b"%c3%28",
        b"+",
        b";",
        b"\x00",
        b"resources.memory=600m",
        b"resources.cpus=1",
        b"\xff\xfe",
        b"count=2",
        b"env=%7B%22A",
    ]
)
BODY = st.lists(PIECES | st.binary(max_size=8), max_size=12).map(b"".join)
KIND = st.sampled_from(
    [
        FORM,
        FORM + "; charset=utf-16",
        "multipart/form-data",
        MULTI,
        "application/json",
        "text/plain",
        "nonsense",
        "",
    ]
)


@FUZZ
@given(body=BODY, kind=KIND, htmx=st.booleans())
@example(body=b"--x\r\nContent-Disposition: form-data\r\n\r\ny\r\n--x--", kind=MULTI, htmx=False)
def test_broken_bodies_do_no_harm(
    body: bytes, kind: str, htmx: bool, world: World, alice: Browser
) -> None:
    _judge(_send(alice, "/sessions", body, kind, htmx), world)


def _forms(app: Flask) -> Iterator[str]:
    """Every form URL of the pages, with a session that does not exist."""
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith("pages.") and "POST" in (rule.methods or ()):
            yield re.sub(r"<[^>]*>", "0" * 32, rule.rule)


@settings(FUZZ, max_examples=12)
@given(fields=changed(), body=BODY, kind=KIND, htmx=st.booleans())
def test_no_form_fails(
    fields: Fields, body: bytes, kind: str, htmx: bool, world: World, alice: Browser, app: Flask
) -> None:
    encoded = urlencode(fields, errors="surrogatepass").encode()
    for path in _forms(app):
        for sent, type_ in ((encoded, FORM), (body, kind)):
            answer = _send(alice, path, sent, type_, htmx)
            assert answer.status_code < 500, (path, answer.text)
    _new(world)
    world.slurm.jobs.clear()


WORDS = st.sampled_from(["running", "nothing", "0", "-1", "9" * 30, "main", "%00", "<b>", "\0"])


@settings(FUZZ, max_examples=15)
@given(query=st.lists(st.tuples(st.text(max_size=12), WORDS | st.text(max_size=40)), max_size=4))
def test_no_query_fails_a_page(query: Fields, alice: Browser, app: Flask) -> None:
    names = ["state", "cursor", "group", "offset", "owner", "q", "limit", "sort", "next"]
    known = [(names[len(value) % len(names)], value) for _name, value in query]
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith("pages.") and "GET" in (rule.methods or ()):
            path = re.sub(r"<[^>]*>", "0" * 32, rule.rule)
            for part in (query, known):
                answer = alice.get(f"{path}?{urlencode(part, errors='surrogatepass')}")
                assert answer.status_code < 500, (path, part, answer.text)


CURSORS = [
    "2026-11-20T12:00:00 x",  # without a zone
    "9999-12-31T23:59:59-14:00 x",  # beyond the range of UTC
    "0001-01-01T00:00:00+14:00 x",
    "2026-11-20T12:00:00+00:00",
    "2026-11-20T12:00:00+00:00 \ud800",
    "[]",
    "{}",
    "null",
    json.dumps(["2026-11-20T12:00:00", "x"]),
]


@pytest.mark.parametrize("text", CURSORS)
def test_a_forged_cursor_is_refused_or_has_no_effect(text: str, alice: Browser) -> None:
    cursor = base64.urlsafe_b64encode(text.encode(errors="surrogatepass")).decode()
    for path in ("/sessions", "/sessions/rows"):
        answer = alice.get(f"{path}?{urlencode({'cursor': cursor})}")
        assert answer.status_code < 500, answer.text
