"""Two portal hosts: what is shut at one is shut at the other, whatever is killed.

Only on a cluster with two hosts: `make test-hosts`, or a running one of `HOSTS=2 make up`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from portal.core.hosts import SHUT_SECONDS
from tests.hosts.doors import at, ends, reaches
from tests.support.client import Api, Visitor, http_session, login
from tests.support.cluster import Cluster, wait_for
from tests.support.portal_settings import SETTINGS, RepeatedRequests, change_settings, slipway_apply
from tests.support.proxy import haproxy_workers, responsive

TINY = {"cpus": 1, "memory": "400m"}
HOSTS = ("portal", "portal2")


@pytest.fixture(scope="module")
def session(both: list[Api]) -> Iterator[str]:
    yield both[0].running(resources=TINY)["id"]
    both[0].clean()


def within(seconds: float, probe: Callable[[], bool]) -> float:
    begun = time.monotonic()
    wait_for("it", probe, seconds, pause=0.05)
    return time.monotonic() - begun


@pytest.mark.parametrize("how", ["close", "logout"])
def test_what_is_shut_at_one_host_is_shut_at_the_other(
    both: list[Api], session: str, how: str
) -> None:
    a, b = both
    api = a
    if how == "logout":
        api = Api(a.cluster, "alice", login(a.cluster, "alice"))
    here = api.open(session, "terminal")
    there = at(here, b)
    within(2, lambda: reaches(there))
    stream = there.websocket("/ws", "tty")
    if how == "close":
        path = f"/sessions/{session}/apps/terminal"
    else:
        newest = max(api.ask("GET", "/tokens")["tokens"], key=lambda token: token["created"])
        path = f"/tokens/{newest['id']}"
    answer = api("DELETE", path)
    assert answer.status_code < 300, answer.text
    done = time.monotonic()
    assert not reaches(here)
    within(2, lambda: not reaches(there))
    assert ends(stream)
    assert time.monotonic() - done < 3


def test_one_worker_runs_and_another_takes_over(both: list[Api]) -> None:
    cluster = both[0].cluster

    def holder() -> str:
        lines = cluster.run("portal", "slipway", "check", check=False).splitlines()
        return next((line.split()[5] for line in lines if "the worker runs on" in line), "")

    first = wait_for("a worker", holder, 30)
    cluster.ctl("daemon", "stop", first, "worker")
    try:
        second = wait_for("another worker", lambda: holder() if holder() != first else "", 15)
        assert {first, second} == {"portal", "portal2"}
    finally:
        cluster.ctl("daemon", "start", first, "worker")


def test_a_host_without_a_worker_cuts_streams_also_of_before_a_reload(
    both: list[Api], session: str
) -> None:
    """An old process of HAProxy makes no health checks, and would have kept them."""
    cluster, (here, there) = both[0].cluster, HOSTS
    visitors = [at(both[0].open(session, "terminal"), api) for api in both]
    for visitor in visitors:
        within(30, partial(reaches, visitor))
    kept, old = (visitor.websocket("/ws", "tty") for visitor in visitors)
    before = haproxy_workers(cluster, there)
    cluster.daemon("reload", there, "haproxy")
    wait_for("a new process", lambda: haproxy_workers(cluster, there)[0] != before[0], 30)
    new = visitors[1].websocket("/ws", "tty")
    assert responsive([kept, old, new]) == 3
    cluster.ctl("daemon", "stop", there, "worker")
    try:
        within(SHUT_SECONDS, lambda: not reaches(visitors[1]))
        assert ends(old)
        assert ends(new)
        assert reaches(visitors[0])
        assert responsive([kept]) == 1, f"{here} follows the database"
    finally:
        cluster.ctl("daemon", "start", there, "worker")
    within(30, partial(reaches, visitors[1]))
    kept.close()


@pytest.fixture
def settings(clusters: list[Cluster]) -> Iterator[list[Cluster]]:
    """The cluster; afterwards both hosts have their own settings again."""
    cluster = clusters[0]
    before = {host: cluster.run(host, "cat", SETTINGS) for host in HOSTS}
    yield clusters
    for host, text in before.items():
        cluster.ctl("put", host, SETTINGS, stdin=text)
        assert slipway_apply(cluster, host=host).returncode == 0


def users(api: Api, visitor: Visitor) -> dict[str, RepeatedRequests]:
    """Somebody who loads pages of a host, one who uses an app there, and a program."""
    page, browser, program = http_session(), visitor.copy(), Api(api.cluster, "alice")
    program.http.headers.update(api.http.headers)
    url = f"{api.cluster.url}/login"
    return {
        f"pages of {url}": RepeatedRequests(lambda: page.get(url, timeout=60)),
        f"app by {url}": RepeatedRequests(lambda: browser.get("/", timeout=60)),
        f"API of {url}": RepeatedRequests(lambda: program("GET", "/sessions", timeout=60)),
    }


def test_a_rolling_restart_loses_no_request_and_cuts_no_stream(
    settings: list[Cluster], both: list[Api], session: str
) -> None:
    """New settings at one host after the other, while both are used."""
    here = both[0].open(session, "terminal")
    visitors = [at(here, api) for api in both]
    for visitor in visitors:
        within(30, partial(reaches, visitor))  # its worker may have been started just now
    sockets = [visitor.websocket("/ws", "tty") for visitor in visitors]
    senders = {
        name: sender
        for api, visitor in zip(both, visitors, strict=True)
        for name, sender in users(api, visitor).items()
    }
    stop = threading.Event()
    with ThreadPoolExecutor(len(senders)) as pool:
        sending = [pool.submit(sender.run, stop) for sender in senders.values()]
        try:
            for host in HOSTS:
                lines = (f'site_name = "At {host}"', "requests_at_once = 150")
                change_settings(settings[0], *lines, host=host)
                done = slipway_apply(settings[0], host=host)
                assert done.returncode == 0, done.stdout + done.stderr
                assert "slipway-worker: restart" in done.stdout
            time.sleep(2)
        finally:
            stop.set()
        for future in sending:
            future.result()
    for name, sender in senders.items():
        print(name, dict(sender.answers), f"longest {sender.longest:.1f} s")
    assert all(set(sender.answers) == {200} for sender in senders.values())
    assert responsive(sockets) == len(HOSTS)
    for socket in sockets:
        socket.close()
    for host, each in zip(HOSTS, settings, strict=True):
        assert f"At {host}" in http_session().get(f"{each.url}/login", timeout=30).text
