"""Sends a row of tests/support/invalid_inputs.py for each check to the running system.

Each request is refused with the expected status, field and words, briefly and quickly, and changes
nothing. tests/unit/web/http/test_body_bad_inputs.py sends all rows to the application.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest
import requests

from portal.core.launch.environment import MAX_TOTAL
from tests.support.client import Api, Browser, Json
from tests.support.cluster import Cluster
from tests.support.invalid_inputs import (
    FORM,
    LAUNCH,
    LIBRARY,
    MAX_ANSWER,
    ONE_FORM_ROW_EACH,
    ONE_ROW_EACH,
    FormRow,
    Row,
)
from tests.support.invalid_jobs import FEWER_GROUPS, NAME, ONE_JOB_FORM_ROW_EACH, is_named

MakeApi = Callable[[str], Api]
TEMPLATES = ("badinput", "badinput1", "badinput2")
SECONDS = 5.0
"""Generous, as the machine may be busy. It took 3.5 s to 11 s before."""
TEXT = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def people(make_api: MakeApi) -> dict[str, Api]:
    return {"alice": make_api("alice"), "admin": make_api("admin")}


@pytest.fixture(scope="module")
def browsers(cluster: Cluster) -> dict[str, Browser]:
    return {user: Browser(cluster, user) for user in ("alice", "admin")}


@pytest.fixture(autouse=True)
def _tidy(people: dict[str, Api]) -> Iterator[None]:
    """Whatever is created by mistake is deleted."""
    caps = people["admin"].ask("GET", "/admin/caps")
    there = {one["id"] for one in people["admin"].list()}
    kept = {user: _presets(api) for user, api in people.items()}
    body = {"title": "Bad input", "resources": {"cpus": 1, "memory": "600m"}}
    people["admin"].ask("PUT", "/admin/templates/badinput", json=body)
    for api in people.values():
        api("PUT", "/presets/x", json=LAUNCH)
    yield
    for name in TEMPLATES:
        people["admin"]("DELETE", f"/admin/templates/{name}")
    for user, api in people.items():
        for name in _presets(api) - kept[user]:
            api("DELETE", f"/presets/{name}")
    if people["admin"].ask("GET", "/admin/caps") != caps:
        people["admin"]("PUT", "/admin/caps", json=caps)
    for one in people["admin"].list():
        if one["id"] not in there and one["owner"] in people:
            people[one["owner"]].launched.append(one["id"])
    for api in people.values():
        api.clean()


def _presets(api: Api) -> set[str]:
    return {preset["name"] for preset in api.ask("GET", "/presets")["presets"]}


FAULTY = "unwell-"
"""Prefix of the environments that tests/slurm/test_ends.py adds."""


def state(people: dict[str, Api]) -> Any:
    """Everything that a request could change and the API shows."""
    admin = people["admin"]
    images = admin.ask("GET", "/admin/images")["images"]
    return (
        sorted((one["id"], one["name"]) for one in admin.list()),
        admin.ask("GET", "/templates")["templates"],
        admin.ask("GET", "/admin/caps"),
        # All clusters of a checkout share the images; these come and go with other tests.
        [one for one in images if not one["environment"].startswith(FAULTY)],
        [api.ask("GET", "/presets")["presets"] for api in people.values()],
        [api.ask("GET", "/job-templates")["templates"] for api in people.values()],
    )


def timed(ask: Callable[[], requests.Response]) -> requests.Response:
    began = time.monotonic()
    answer = ask()
    if time.monotonic() - began >= SECONDS:  # the first one may have been slowed by something else
        began = time.monotonic()
        answer = ask()
        assert time.monotonic() - began < SECONDS
    assert answer.status_code < 500, answer.text[:500]
    return answer


@pytest.mark.parametrize("row", ONE_ROW_EACH, ids=str)
def test_api_rows(row: Row, people: dict[str, Api], researcher: Api, session: Json) -> None:
    who = people["admin" if row.admin else "alice"]
    before = state(people)
    headers = {"Content-Type": "application/json"} if row.body is not None else {}
    answer = timed(
        lambda: who(
            row.method,
            row.path.format(session=session["id"]),
            data=row.body,
            params=row.query,
            headers=headers | row.headers,
        )
    )
    assert answer.status_code == row.status, answer.text[:500]
    assert row.words in answer.text
    assert not any(words in answer.text for words in LIBRARY)
    assert len(answer.content) <= MAX_ANSWER
    if row.field:
        assert row.field in [error["field"] for error in answer.json()["errors"]]
        assert not answer.json()["detail"].startswith(":")
    assert state(people) == before


@pytest.mark.parametrize(("name", "rows"), FEWER_GROUPS, ids=[name for name, _ in FEWER_GROUPS])
def test_job_rows(name: str, rows: list[Row], people: dict[str, Api], cluster: Cluster) -> None:
    before, began = state(people), f"now-{int(SECONDS * 60)}seconds"
    for row in rows:
        headers = {"Content-Type": "application/json"} | row.headers
        answer = timed(
            partial(people["alice"], row.method, row.path, data=row.body, headers=headers)
        )
        assert answer.status_code == row.status, (row, answer.text[:500])
        assert row.words in answer.text, row
        assert not any(words in answer.text for words in LIBRARY), row
        assert len(answer.content) <= MAX_ANSWER
        if row.field:
            assert is_named(row, [error["field"] for error in answer.json()["errors"]]), row
    assert state(people) == before
    submitted = ["sacct", "-nX", f"--starttime={began}", f"--name={NAME}", "--user=alice"]
    assert cluster.run("login", *submitted, user="alice").strip() == ""


@pytest.mark.parametrize("row", [*ONE_FORM_ROW_EACH, *ONE_JOB_FORM_ROW_EACH], ids=str)
def test_form_rows(row: FormRow, people: dict[str, Api], browsers: dict[str, Browser]) -> None:
    browser = browsers["admin" if row.admin else "alice"]
    empty = len(browser.get("/sessions/new").content)
    before = state(people)
    data = dict(row.data)
    if row.path == "/admin/caps":
        page = browser.get("/admin/limits").text
        data["seen"] = page.partition('name="seen" value="')[2].partition('"')[0]
    answer = timed(lambda: browser.post(row.path, data))
    assert answer.status_code == row.status, answer.text[:500]
    assert row.words in answer.text
    assert not any(words in answer.text for words in LIBRARY)
    assert len(answer.content) <= empty + MAX_ANSWER + 6 * len(row.data.get("env", ""))
    assert state(people) == before


@pytest.mark.parametrize(
    "name", ["Ünïcödé", "Zoe\u0308session", "\uff11\uff12\uff13\uff14", "नमस्ते"]
)
def test_12_names_may_have_letters_of_any_script(
    name: str, alice: Api, browsers: dict[str, Browser]
) -> None:
    session = alice.launch(name=name)
    assert session["name"] == name.replace("e\u0308", "ë")
    assert session["name"] in browsers["alice"].get("/sessions").text
    log = browsers["alice"].get(f"/sessions/{session['id']}/log/download")
    assert log.status_code in (200, 503)


def test_e42_the_wizard_can_send_every_permitted_variable(
    alice: Api, browsers: dict[str, Browser]
) -> None:
    size = (MAX_TOTAL - 16 * 3) // 16 // 2
    env = {f"A{n:02}": "é" * size for n in range(16)}
    session = alice.launch(env=env)
    page = browsers["alice"].get(f"/sessions/new?from={session['id']}").text
    text = html.unescape(page.partition('name="env"')[2].partition('value="')[2].partition('"')[0])
    kept = browsers["alice"].post("/presets", FORM | {"env": text, "preset": "big"})
    assert kept.status_code == 200, kept.text[:500]
    found = alice.ask("GET", "/presets")["presets"]
    assert sorted(next(one for one in found if one["name"] == "big")["launch"]["env"]) == [*env]


def test_e3_a_new_template_is_appended(people: dict[str, Api]) -> None:
    admin = people["admin"]
    small = {"title": "Small", "resources": {"cpus": 1, "memory": "600m"}}
    admin.ask("PUT", "/admin/templates/badinput1", json=small | {"place": 100_000})
    admin.ask("PUT", "/admin/templates/badinput2", json=small)
    names = [one["name"] for one in admin.ask("GET", "/templates")["templates"]]
    assert names[-2:] == ["badinput1", "badinput2"]


@pytest.mark.parametrize("name", ["mount", "x"])
def test_e6_a_form_with_too_many_fields_is_not_read(
    name: str, browsers: dict[str, Browser]
) -> None:
    browser = browsers["alice"]
    page = browser.get("/sessions/new").text
    token = page.partition('name="csrf_token" value="')[2].partition('"')[0]
    fields = [("csrf_token", token), *((name, f"m{n}") for n in range(40_000))]
    url = f"{browser.cluster.url}/sessions"
    answer = timed(
        lambda: browser.http.post(
            url, urlencode(fields), headers={"Content-Type": TEXT}, timeout=30
        )
    )
    assert answer.status_code == 413
    assert len(answer.content) <= MAX_ANSWER


@pytest.fixture
def storage_in_the_way(cluster: Cluster) -> Iterator[None]:
    """Replace alice's folder of storage folders by a file for a moment."""
    aside = "cd ~alice && [ ! -e storage ] || mv storage storage.aside"
    back = "cd ~alice && rm -f storage && { [ ! -e storage.aside ] || mv storage.aside storage; }"
    cluster.shell("login", f"{aside}; touch storage", user="alice")
    yield
    cluster.shell("login", back, user="alice")


def test_e8_a_blocked_storage_root_is_not_an_error_of_the_name(
    storage_in_the_way: None, people: dict[str, Api]
) -> None:
    answer = people["alice"]("POST", "/folders", json={"name": "badinput"})
    assert answer.status_code == 409, answer.text
    assert "errors" not in answer.json()
    assert "Your folder for storage" in answer.json()["detail"]


def test_e32_a_reused_key_with_another_request_is_reported(
    browsers: dict[str, Browser],
) -> None:
    data = FORM | {"key": f"badinput{time.time()}"}
    assert browsers["alice"].post("/sessions", data, allow_redirects=False).status_code == 303
    second = browsers["alice"].post("/sessions", data | {"name": "another"})
    assert second.status_code == 409
    assert "This page has launched something else already" in second.text
