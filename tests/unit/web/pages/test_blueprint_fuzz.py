"""Every form of the pages, found by following links as users do, resubmitted nearly unchanged.

Nothing here is specific to a form: fields and URLs are read from the pages, as a browser does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import pytest
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.fakes import World
from tests.support.invalid_inputs import LAUNCH, MAX_ANSWER, TEMPLATE
from tests.unit.web.conftest import Api, Browser, Runner
from tests.unit.web.judge import judge_page, state

MAX_PAGES = 60
LEAVES = ("/logout", "/login", "/open/", "/data/")
"""Links that would end the walk, or that HAProxy answers."""
ENDS_LOGINS = ("/account/revoke", "/account/log-out", "/admin/people/")
"""Forms that end the login by which the others are sent: web/test_tokens.py covers them."""
FORM = "application/x-www-form-urlencoded"


@dataclass
class Form:
    """A form of a page: its target URL and its fields with their values."""

    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)


class Page(HTMLParser):
    """The forms and links of a page by HTML's rules (fields may be outside of their form)."""

    def __init__(self, address: str, text: str) -> None:
        super().__init__()
        self.address = address
        self.links: set[str] = set()
        self.forms: dict[str, Form] = {}
        self.actions: dict[str, set[str]] = {}
        self._open = ""
        self._select = ""
        self._fields: list[tuple[str, str, str]] = []
        self.feed(text)
        for form, name, value in self._fields:
            if form in self.forms:
                self.forms[form].fields.append((name, value))

    def all(self) -> list[Form]:
        """Every form, once for each URL to which one of its buttons submits it."""
        return [
            Form(action, form.fields)
            for name, form in self.forms.items()
            for action in {form.action, *self.actions.get(name, ())}
        ]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read an element."""
        response_json = {name: value or "" for name, value in attrs}
        form = response_json.get("form", self._open)
        name = response_json.get("name", "")
        match tag:
            case "a" if response_json.get("href", "").startswith(("/", "?")):
                self.links.add(urljoin(self.address, response_json["href"]))
            case "form":
                self._open = response_json.get("id") or f"form {len(self.forms)}"
                if response_json.get("method", "").lower() == "post":
                    action = urljoin(self.address, response_json.get("action", ""))
                    self.forms[self._open] = Form(action)
            case "select":
                self._select = name
            case "option" if self._select and (
                "selected" in response_json or not response_json.get("value")
            ):
                self._fields.append((form, self._select, response_json.get("value", "")))
            case "textarea":
                self._fields.append((form, name, ""))
            case "button" | "input":
                if "formaction" in response_json:
                    action = urljoin(self.address, response_json["formaction"])
                    self.actions.setdefault(form, set()).add(action)
                off = (
                    response_json.get("type") in ("checkbox", "radio")
                    and "checked" not in response_json
                )
                if name and not off:
                    self._fields.append((form, name, response_json.get("value", "")))

    def handle_endtag(self, tag: str) -> None:
        """Leave a form or a select element."""
        self._open = "" if tag == "form" else self._open
        self._select = "" if tag == "select" else self._select


def walk(browser: Browser) -> list[Form]:
    """Load every page that can be reached by links, and collect their forms by URL."""
    found: dict[str, Form] = {}
    seen: set[str] = set()
    ahead = ["/sessions"]
    while ahead and len(seen) < MAX_PAGES:
        address = ahead.pop(0)
        path = urlsplit(address).path
        if path in seen or path.startswith(LEAVES) or "download" in path:
            continue
        seen.add(path)
        answer = browser.get(address, follow_redirects=True)
        assert answer.status_code == 200, address
        if answer.mimetype != "text/html":
            continue
        page = Page(address, answer.text)
        ahead += sorted(page.links)
        for form in page.all():
            if not urlsplit(form.action).path.startswith(LEAVES + ENDS_LOGINS):
                found.setdefault(form.action, form)
    return list(found.values())


JUNK = st.sampled_from(
    [
        "", " ", "-1", "0", "9" * 40, "1e9", "x\0", "\r\n", "\u202e", "é", "x" * 20_000, "null",
        "[]", '{"a b": 1}', '{"A": "b", "A": "c"}', "[" * 3000, "../../etc", "<b>", "{{ 7*7 }}",
        "1G\n", "65t", "up", "\uff11", "💥" * 70, "on", "some", "_a", "home", "2026-13-40",
    ]
) | st.text(max_size=20)  # fmt: skip


@st.composite
def nearly(draw: st.DrawFn, form: Form) -> list[tuple[str, str]]:
    """The form's fields; one or two of them changed, missing, duplicated, or new."""
    fields = list(form.fields)
    for _ in range(draw(st.integers(0, 2))):
        others = [at for at, (name, _) in enumerate(fields) if name != "csrf_token"]
        act = draw(st.sampled_from(["change", "change", "drop", "twice", "new", "many"]))
        if act == "new" or not others:
            name = draw(st.sampled_from(["x", "to", "ids", "mount", "name", "seen", "resources"]))
            fields.append((name, draw(JUNK)))
            continue
        at = draw(st.sampled_from(others))
        name = fields[at][0]
        if act == "drop":
            del fields[at]
        elif act == "change":
            fields[at] = (name, draw(JUNK))
        else:
            fields += [(name, draw(JUNK))] * (1 if act == "twice" else 700)
    return fields


@pytest.fixture
def full(world: World, api: Callable[[str], Api], launched: Callable[..., Runner]) -> None:
    """A portal in which every page has content."""
    for name in ("alice", "admin"):
        runner = launched(name)
        assert runner.ready().status_code == 200
        world.slurm.files[f"/home/{name}/storage/data/"] = b""
        assert api(name)("PUT", "/presets/known", json=LAUNCH).status_code == 201
    for name in ("known", "other"):
        assert api("admin")("PUT", f"/admin/templates/{name}", json=TEMPLATE).status_code == 200


def test_the_walk_finds_the_forms(app: Flask, full: None) -> None:
    """Forms that are not found would not be tested: these must exist."""
    alice = {urlsplit(form.action).path for form in walk(Browser(app).log_in("alice"))}
    assert {"/sessions", "/presets", "/folders", "/presets/known/rename"} <= alice
    assert not any(path.startswith("/admin") for path in alice)
    admin = {urlsplit(form.action).path for form in walk(Browser(app).log_in("admin"))}
    assert {
        "/admin/templates",
        "/admin/templates/known",
        "/admin/templates/known/move",
        "/admin/templates/known/delete",
        "/admin/images/python/3.13",
        "/admin/caps",
    } <= admin


@pytest.mark.parametrize("person", ["alice", "admin"])
@settings(max_examples=50, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nearly_valid_forms(
    person: str, data: st.DataObject, world: World, app: Flask, full: None, found: dict[str, Any]
) -> None:
    if person not in found:
        browser = Browser(app).log_in(person)
        found[person] = (browser, walk(browser), len(browser.get("/sessions/new").data))
    browser, forms, wizard = found[person]
    form = data.draw(st.sampled_from(forms))
    fields = data.draw(nearly(form))
    before = state(world)
    answer = browser.client.post(
        form.action,
        data=urlencode(fields, errors="surrogatepass"),
        content_type=FORM,
        base_url=browser.base,
        headers={"HX-Request": "true"} if data.draw(st.booleans()) else {},
    )
    typed = sum(len(value) for _, value in fields if len(value) <= MAX_ANSWER)
    judge_page(answer, before, world, wizard + 2 * MAX_ANSWER + 6 * min(typed, 2 * MAX_ANSWER))


@pytest.fixture
def found() -> dict[str, Any]:
    """Browsers and the forms that they found, once per test."""
    return {}
