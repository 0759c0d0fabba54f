"""Ids of requests, the access log, and lines about refused log-ins."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from flask import Flask

from portal.logs.format import FIELDS, JsonFormatter, TextFormatter
from portal.logs.setup import ACCESS
from portal.services.auth.attempts import refusals
from tests.unit.web.conftest import PORTAL, Api, Browser

ID = "0f0e0d0c-0b0a-4908-8706-050403020100"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """The access log's records."""
    caplog.set_level(logging.INFO, ACCESS)
    return lambda: [one for one in caplog.records if one.name == ACCESS]


def test_a_line_for_each_request(app: Flask, alice: Browser, lines: Any) -> None:
    before = len(lines())
    alice.get("/sessions?q=secret-word")
    (record,) = lines()[before:]
    fields = getattr(record, FIELDS)
    assert (fields["method"], fields["path"], fields["status"]) == ("GET", "/sessions", 200)
    assert "secret-word" not in JsonFormatter().format(record)


def test_line_breaks_in_a_path_are_quoted(app: Flask, lines: Any) -> None:
    app.test_client().get("/x%0aslipway: login refused for root from 6.6.6.6", base_url=PORTAL)
    (record,) = lines()
    assert "\n" not in TextFormatter().format(record)
    assert "%0A" in record.getMessage()


def test_probes_are_not_logged(app: Flask, lines: Any) -> None:
    assert app.test_client().get("/livez", base_url=PORTAL).status_code == 200
    assert app.test_client().get("/readyz", base_url=PORTAL).status_code == 503
    assert lines() == []
    assert app.test_client().get("/metrics", base_url=PORTAL).status_code == 404
    assert len(lines()) == 1


def test_haproxys_id_is_the_reference_of_an_error(
    app: Flask, alice: Browser, api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    person: Api = api("alice")
    monkeypatch.setattr("portal.services.session.sessions.Sessions.get", fail)
    where = f"/sessions/{'0' * 32}"
    page = alice.get(where, headers={"X-Slipway-Request": ID})
    assert page.status_code == 500
    assert ID in page.text
    answer = person("GET", where, headers={"X-Slipway-Request": ID})
    assert (answer.status_code, answer.get_json()["reference"]) == (500, ID)


def test_an_id_of_another_form_is_replaced(
    app: Flask, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("portal.services.session.sessions.Sessions.get", fail)
    page = alice.get(f"/sessions/{'0' * 32}", headers={"X-Slipway-Request": "<b>x</b>"})
    assert page.status_code == 500
    assert "<b>x</b>" not in page.text
    assert "Reference for the administrators" in page.text


def test_a_request_that_is_refused_has_no_reference(alice: Browser) -> None:
    assert "Reference" not in alice.get("/sessions/nothing").text


@pytest.mark.parametrize(
    ("name", "shown"), [("alice", "alice"), ("my password!", "-"), ("a\nb", "-")]
)
def test_refused_log_ins_are_lines_of_one_form(
    app: Flask, caplog: pytest.LogCaptureFixture, name: str, shown: str
) -> None:
    Browser(app).post("/login", {"username": name, "password": "correct horse"})
    (record,) = [one for one in caplog.records if one.name == refusals.name]
    assert record.getMessage() == f"login refused for {shown} from 127.0.0.1"
    assert "correct horse" not in caplog.text
    assert "my password" not in caplog.text
