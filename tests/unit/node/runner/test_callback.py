"""Reports to a real HTTPS server on loopback, which goes down and up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from portal.node.runner.callback import (
    Callback,
    Refused,
    Reporter,
    SessionOver,
    SessionUnknown,
    Unreachable,
    post_ready,
    spread,
    until_next,
)
from portal.node.runner.spec import Spec, parse_spec
from tests.support.runner_portal import FakePortal, spec_text


class Reporting:
    """A reporter running in its own thread."""

    def __init__(self, spec: Spec) -> None:
        self.ended = threading.Event()
        self.reporter = Reporter(Callback(spec), 0.2, usage, self.ended.set)
        self.thread = threading.Thread(target=self.reporter.run)
        self.thread.start()

    def report(self, state: str) -> None:
        self.reporter.app_changed("terminal", {"state": state})


@pytest.fixture
def reporting(portal: FakePortal, spec: Spec) -> Iterator[Reporting]:
    reporting = Reporting(spec)
    yield reporting
    portal.status = 410
    reporting.thread.join(5)
    assert not reporting.thread.is_alive()


@pytest.fixture
def callback(spec: Spec) -> Iterator[Callback]:
    callback = Callback(spec)
    yield callback
    callback.close()


def usage() -> dict[str, object]:
    return {"cpu_seconds": 1.0}


def test_one_connection_for_many_reports(portal: FakePortal, callback: Callback) -> None:
    callback.connect()
    for _ in range(3):
        callback.post("usage", usage())
    assert portal.connections == 1
    assert [message for _, _, message in portal.reports] == [usage()] * 3


def test_closed_connection_is_reopened(portal: FakePortal, callback: Callback) -> None:
    callback.post("usage", usage())
    portal.drop_connections()
    callback.post("usage", usage())
    assert portal.connections == 2


PAGE = "<html>There is something else here.</html>"


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (410, '{"code": "session_ended"}', SessionOver),
        (410, '{"title": "This session is over"}', SessionOver),  # of an earlier portal
        (410, "{}", Unreachable),
        (410, PAGE, Unreachable),
        (401, "{}", SessionUnknown),
        (404, '{"code": "session_unknown"}', SessionUnknown),
        (404, '{"code": "session_ended"}', Unreachable),
        (404, "{}", Unreachable),
        (401, PAGE, Unreachable),
        (403, "{}", Unreachable),
        (403, PAGE, Unreachable),
        (421, "{}", Unreachable),
        (422, "{}", Refused),
        (422, PAGE, Unreachable),
        (500, PAGE, Unreachable),
        (503, "{}", Unreachable),
        (200, PAGE, Unreachable),
        (200, "[]", Unreachable),
    ],
)
def test_only_the_portals_own_words_end_a_session(
    portal: FakePortal, callback: Callback, status: int, text: str, error: type[Exception]
) -> None:
    portal.status, portal.text = status, text
    with pytest.raises(error):
        callback.post("usage", usage())


def test_server_of_another_ca_receives_nothing(portal: FakePortal) -> None:
    foreign = portal.client.certificate.read_text()
    callback = Callback(parse_spec(spec_text(portal, callback_ca=foreign)))
    with pytest.raises(Unreachable, match="certificate"):
        callback.post("usage", usage())
    assert portal.reports == []


def test_certificate_of_another_host_is_refused(portal: FakePortal) -> None:
    other = f"https://127.0.0.1:{portal.port}"
    callback = Callback(parse_spec(spec_text(portal, callback=other)))
    with pytest.raises(Unreachable, match="certificate"):
        callback.post("usage", usage())
    assert portal.reports == []


def test_ready_waits_for_the_portal(portal: FakePortal, callback: Callback) -> None:
    portal.down()
    late = threading.Timer(0.4, portal.up)
    late.start()
    answer = post_ready(callback, {"port": 1, "csr": portal.request()}, patience=10)
    late.join()
    assert "BEGIN CERTIFICATE" in str(answer["certificate"])


def test_ready_gives_up_eventually(portal: FakePortal, callback: Callback) -> None:
    portal.down()
    with pytest.raises(Unreachable, match="the portal could not be reached for 0 minutes"):
        post_ready(callback, {}, patience=0.3)


def test_apps_are_reported_at_once_and_usage_at_every_heartbeat(
    portal: FakePortal, reporting: Reporting
) -> None:
    reporting.report("ready")
    began = time.monotonic()
    portal.wait_for("apps/terminal", state="ready")
    assert time.monotonic() - began < 0.15
    portal.wait_for("usage")


def test_only_the_newest_report_is_sent_once_the_portal_is_back(
    portal: FakePortal, reporting: Reporting
) -> None:
    portal.wait_for("usage")
    portal.status = 503
    reporting.report("failed")
    portal.wait_for("apps/terminal", state="failed")
    reporting.report("ready")
    time.sleep(0.5)
    portal.reset()
    portal.wait_for("apps/terminal", state="ready")
    sent = [message for _, path, message in portal.reports if path.endswith("terminal")]
    assert sent == [{"state": "ready"}]


def test_portal_that_is_down_stops_nothing(portal: FakePortal, reporting: Reporting) -> None:
    portal.wait_for("usage")
    portal.down()
    portal.drop_connections()
    time.sleep(0.5)
    assert reporting.thread.is_alive()
    assert not reporting.ended.is_set()
    portal.reset()
    portal.up()
    portal.wait_for("usage")


def test_end_of_the_session_stops_the_reports(portal: FakePortal, reporting: Reporting) -> None:
    portal.wait_for("usage")
    portal.status = 410
    assert reporting.ended.wait(5)


def test_refused_report_is_not_repeated(portal: FakePortal, reporting: Reporting) -> None:
    portal.status = 422
    reporting.report("ready")
    portal.wait_for("apps/terminal")
    time.sleep(0.5)
    assert len([path for _, path, _ in portal.reports if path.endswith("terminal")]) == 1


def usages(portal: FakePortal) -> list[dict[str, object]]:
    return [message for _, path, message in portal.reports if path.endswith("usage")]


def test_the_portals_answer_says_when_usage_is_sent_next(
    portal: FakePortal, reporting: Reporting
) -> None:
    portal.wait_for("usage")
    portal.text = '{"next": 60}'
    portal.reports.clear()
    portal.wait_for("usage")
    time.sleep(0.7)
    assert len(usages(portal)) == 1
    portal.text = None
    reporting.reporter.hurry()
    portal.wait_for("usage", peak_cpu_percent=0.0)  # measured in between
    time.sleep(0.5)
    assert len(usages(portal)) >= 3  # an answer without a time: as often as before
    assert "peak_cpu_percent" not in usages(portal)[-1]


def test_a_portal_that_does_not_know_peaks_gets_none_after_its_refusal(
    portal: FakePortal, reporting: Reporting
) -> None:
    portal.text = '{"next": 1}'
    portal.wait_for("usage", peak_cpu_percent=0.0)
    portal.status, portal.text = 422, "{}"
    portal.reports.clear()
    portal.wait_for("usage")
    portal.reset()
    portal.wait_for("usage")
    assert usages(portal)[0] == usage()


def test_the_time_that_the_portal_asks_for_has_bounds() -> None:
    assert 27 <= until_next(30, 10) <= 30
    assert 108 <= until_next(120, 120) <= 120  # a site's sessions.heartbeat_seconds
    assert until_next(1e9, 10) <= 60
    assert until_next(0, 10) >= 0.9


def test_reports_are_spread() -> None:
    assert len({spread(10.0) for _ in range(20)}) > 1
    assert all(9.0 <= spread(10.0) <= 10.0 for _ in range(100))
