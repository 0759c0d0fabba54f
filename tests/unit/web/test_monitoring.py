"""/livez, /readyz and /metrics: who is told what."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.support.fakes import World
from tests.unit.web.conftest import PORTAL, Browser

SECRETS = ("alice", "MiB", "slipway_", "socket")


def ask(app: Flask, path: str, frontend: str = "", **options: Any) -> TestResponse:
    """Ask as HAProxy does for a listener; "" is that of browsers."""
    headers = {"X-Slipway-Frontend": frontend} if frontend else {}
    base = "http://10.0.0.9:9464" if frontend else PORTAL
    return app.test_client().get(path, base_url=base, headers=headers, **options)


@pytest.fixture
def running(world: World) -> World:
    """A portal whose worker runs."""
    world.worker.poll()
    world.services.monitoring.beat()
    return world


def test_this_process_answers(app: Flask) -> None:
    answer = ask(app, "/livez")
    assert (answer.status_code, answer.text) == (200, "ok\n")


def test_everybody_may_ask_whether_it_is_ready(app: Flask, running: World) -> None:
    assert (ask(app, "/readyz").status_code, ask(app, "/readyz").text) == (200, "ok\n")


def test_strangers_learn_which_part_and_no_more(app: Flask, running: World) -> None:
    running.clock.advance(seconds=60)
    for path in ("/readyz", "/readyz?verbose"):
        answer = ask(app, path)
        assert answer.status_code == 503
        assert answer.text == "not ready: worker, slurm\n"
        assert not [word for word in SECRETS if word in answer.text]


def test_the_listener_for_monitoring_tells_details(app: Flask, running: World) -> None:
    answer = ask(app, "/readyz?verbose", "monitoring")
    assert answer.status_code == 200
    found = answer.get_json()
    assert found["ready"] is True
    assert set(found["parts"]) == {"database", "worker", "slurm", "haproxy", "disk"}
    assert found["parts"]["disk"]["text"] == "51200 MiB of 102400 MiB free"


def test_metrics_are_on_that_listener_only(app: Flask, running: World) -> None:
    assert ask(app, "/metrics").status_code == 404
    answer = ask(app, "/metrics", "monitoring")
    assert answer.status_code == 200
    assert answer.content_type.startswith("text/plain; version=0.0.4")
    assert 'slipway_ready{part="worker"} 1.0' in answer.text


@pytest.mark.parametrize(
    "path", ["/sessions", "/login", "/runner/v1/sessions/x/usage", "/api/v1/me"]
)
def test_nothing_else_is_on_that_listener(app: Flask, path: str) -> None:
    assert ask(app, path, "monitoring").status_code == 404


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/livez"])
def test_runners_reach_nothing_of_it(app: Flask, path: str) -> None:
    assert ask(app, path, "runners").status_code == 404


def test_routes_are_counted_by_their_templates(app: Flask, alice: Browser) -> None:
    for number in range(3):
        alice.get(f"/sessions/{number:032d}")
        alice.get(f"/nothing/{number}")
    text = ask(app, "/metrics", "monitoring").text
    assert (
        'slipway_http_requests_total{method="GET",route="/sessions/<session_id>",status="4xx"} 3.0'
    ) in text
    assert 'slipway_http_requests_total{method="GET",route="(none)",status="4xx"} 3.0' in text
    assert "0000000" not in text
    assert "alice" not in text


def test_unchanged_polls_are_counted_and_measured(app: Flask, alice: Browser) -> None:
    etag = alice.get("/jobs/rows").headers["ETag"]
    assert alice.get("/jobs/rows", headers={"If-None-Match": etag}).status_code == 204
    text = ask(app, "/metrics", "monitoring").text
    polls = 'slipway_http_requests_total{method="GET",route="unchanged polls",status="2xx"} 1.0'
    assert polls in text
    took = re.search(r'slipway_http_request_seconds_sum\{route="unchanged polls"\} (\S+)', text)
    assert took is not None
    assert float(took[1]) > 0


def test_log_ins_are_counted(app: Flask, alice: Browser) -> None:
    Browser(app).post("/login", {"username": "alice", "password": "wrong"})
    text = ask(app, "/metrics", "monitoring").text
    assert 'slipway_logins_total{outcome="ok"} 1.0' in text
    assert 'slipway_logins_total{outcome="refused"} 1.0' in text


def test_launches_are_timed(app: Flask, world: World, launched: Any) -> None:
    runner = launched()
    world.clock.advance(seconds=4)
    assert runner.ready().status_code == 200
    assert runner.ready().status_code == 200  # repeated by a runner that did not get the answer
    text = ask(app, "/metrics", "monitoring").text
    for phase in ("submit", "queue", "start", "total"):
        assert f'slipway_launch_seconds_count{{phase="{phase}"}} 1.0' in text
    assert 'slipway_launch_seconds_sum{phase="total"} 4.0' in text


def test_pages_say_that_the_worker_is_down(app: Flask, running: World, alice: Browser) -> None:
    running.slurm.down = True
    running.worker.poll()
    assert "Slurm has not answered since" in alice.get("/sessions").text
    running.clock.advance(seconds=20)
    for path in ("/sessions", "/jobs"):
        page = alice.get(path).text
        assert "background process has not been running since" in page
        assert "Slurm has not answered" not in page


def test_a_session_is_unknown_because_of_the_worker(
    running: World, alice: Browser, launched: Any
) -> None:
    session = launched().session.id
    running.clock.advance(seconds=20)
    page = alice.get(f"/sessions/{session}").text
    assert "background process is not running. Sessions and open apps go on" in page
    assert "Slurm has not answered" not in page


def test_a_balancer_asks_for_one_part(app: Flask, running: World) -> None:
    running.clock.advance(seconds=31)
    assert ask(app, "/readyz").text == "not ready: worker, slurm\n"
    assert ask(app, "/readyz?part=haproxy&part=database").status_code == 200
    assert ask(app, "/readyz?part=haproxy&part=worker").text == "not ready: worker\n"
    answer = ask(app, "/readyz?part=host", "monitoring")
    assert answer.status_code == 422
    assert "part: " in answer.text and "host" in answer.text
