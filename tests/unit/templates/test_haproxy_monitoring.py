"""The listener for monitoring, and ids of requests, in a real HAProxy."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.config import Settings
from tests.unit.web.front import Front, make_settings, render, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """One HAProxy for all tests here."""
    with running_front(tmp_path_factory.mktemp("front"), "subdomains") as running:
        yield running


@pytest.mark.parametrize("path", ["/metrics", "/livez", "/readyz?verbose", "/healthz"])
def test_it_leads_to_the_portal(front: Front, path: str) -> None:
    answer = front.watched(path, X_Slipway_Frontend="runners", X_Forwarded_For="6.6.6.6")
    assert answer.seen["path"] == path
    assert answer.sent("x-slipway-frontend") == ["monitoring"]
    assert answer.sent("x-forwarded-for") == ["127.0.0.1"]


@pytest.mark.parametrize(
    "path", ["/", "/sessions", "/login", "/runner/v1/x", "/metrics/", "/api/v1"]
)
def test_nothing_else_is_there(front: Front, path: str) -> None:
    assert front.watched(path).status == 404


def test_nothing_is_changed_by_it(front: Front) -> None:
    assert front.watched("/metrics", "POST").status == 404


def test_haproxys_own_metrics(front: Front) -> None:
    text = front.watched("/haproxy-metrics").text
    assert 'haproxy_frontend_http_requests_total{proxy="web"}' in text


@pytest.mark.parametrize("path", ["/metrics", "/haproxy-metrics"])
def test_browsers_reach_no_metrics(front: Front, path: str) -> None:
    answer = front.ask(f"localhost:{front.port}", path)
    assert answer.status == 404 or answer.sent("x-slipway-frontend") == []


def test_load_balancers_may_ask_by_number(front: Front) -> None:
    for path in ("/livez", "/readyz"):
        answer = front.ask(f"127.0.0.1:{front.port}", path, X_Slipway_Frontend="monitoring")
        assert answer.sent("host") == ["localhost"]
        assert answer.sent("x-slipway-frontend") == []


def test_each_request_has_an_id_of_haproxys(front: Front) -> None:
    host = f"localhost:{front.port}"
    ids = [front.ask(host, "/sessions", X_Slipway_Request="forged") for _ in range(2)]
    first, second = ([*one.sent("x-slipway-request")] for one in ids)
    assert len(first) == len(second) == 1
    assert first != second
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first[0])


def test_only_the_networks_of_the_settings(tmp_path: Path) -> None:
    values = make_settings(tmp_path, watch_port=9464).model_dump()
    values["monitoring"] = {"listen": "10.0.0.5:9464", "allow": ["10.1.0.0/16", "fd00::/8"]}
    text = render(Settings.model_validate(values))
    assert "bind 10.0.0.5:9464" in text
    assert "tcp-request connection reject unless { src 10.1.0.0/16 fd00::/8 }" in text


def test_without_it_there_is_no_listener(tmp_path: Path) -> None:
    assert "frontend monitoring" not in render(make_settings(tmp_path))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("listen", "9464"),
        ("listen", "127.0.0.1:9464 user root"),
        ("allow", ["example.org"]),
        ("allow", ["127.0.0.1 } || { always_true"]),
        ("allow", []),
    ],
)
def test_settings_that_haproxy_would_misread(tmp_path: Path, key: str, value: object) -> None:
    values = make_settings(tmp_path).model_dump()
    values["monitoring"] = {"listen": "127.0.0.1:9464"} | {key: value}
    with pytest.raises(ValueError, match=key):
        Settings.model_validate(values)
