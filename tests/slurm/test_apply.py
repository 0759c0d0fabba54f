"""`slipway apply` while the portal is used: nothing is refused, and no stream is cut."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from websockets.sync.client import ClientConnection

from tests.support.client import TIMEOUT, Api, Json, Visitor, http_session
from tests.support.cluster import Cluster
from tests.support.portal_settings import SETTINGS, RepeatedRequests, change_settings, slipway_apply
from tests.support.proxy import haproxy_workers, responsive

SIZE = 64 * 1024 * 1024
LONGEST = 10.0
"""No request waits as long as a new gunicorn worker needs to load the application, on a machine
that is busy: a second or two on one that is not."""
SOCKET = "/api/events/subscribe"
CONFIG = "/run/slipway/haproxy.cfg"


@pytest.fixture(scope="module")
def lab(researcher: Api, session: Json) -> Visitor:
    """JupyterLab in the shared session."""
    return researcher.open(session["id"], "jupyterlab")


@pytest.fixture(scope="module", autouse=True)
def _as_before(cluster: Cluster) -> Iterator[None]:
    """Afterwards the portal runs with its own settings again."""
    before = cluster.run("portal", "cat", SETTINGS)
    yield
    cluster.ctl("put", "portal", SETTINGS, stdin=before)
    assert slipway_apply(cluster).returncode == 0


def download(cluster: Cluster, api: Api, stop: threading.Event) -> int:
    """Read a file slowly, until told to read the rest; returns the bytes."""
    url = f"{cluster.url}/data/files/home/apply.bin"
    headers = {"Authorization": api.http.headers["Authorization"]}
    total = 0
    with http_session().get(url, headers=headers, stream=True, timeout=60) as answer:
        assert answer.status_code == 200
        for block in answer.iter_content(65536):
            total += len(block)
            stop.wait(0.1)
    return total


def test_nothing_is_refused_and_no_stream_is_cut(
    cluster: Cluster, researcher: Api, lab: Visitor
) -> None:
    make = f"head -c {SIZE} /dev/zero > apply.bin"
    cluster.shell("login", make, user="alice")
    page, posts = http_session(), http_session()
    posts.headers["Authorization"] = str(researcher.http.headers["Authorization"])
    login, api = f"{cluster.url}/login", f"{cluster.url}/api/v1/sessions"
    senders = {
        "pages": RepeatedRequests(lambda: page.get(login, timeout=60)),
        "app": RepeatedRequests(lambda: lab.get("/api/status", timeout=60)),
        "posts": RepeatedRequests(lambda: posts.post(api, json={"name": 1}, timeout=60)),
    }
    socket: ClientConnection = lab.websocket(SOCKET)
    before, stop = haproxy_workers(cluster), threading.Event()
    with ThreadPoolExecutor(4) as pool:
        file = pool.submit(download, cluster, researcher, stop)
        sending: list[Future[None]] = [pool.submit(each.run, stop) for each in senders.values()]
        try:
            time.sleep(1)
            change_settings(cluster, 'site_name = "Campus"', "requests_at_once = 150")
            done = slipway_apply(cluster)
            time.sleep(1)
        finally:
            stop.set()
        for each in sending:
            each.result()
        assert file.result() == SIZE
    for name, sender in senders.items():
        print(name, dict(sender.answers), f"longest {sender.longest:.1f} s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sc0_conn_cur gt 150" in done.stdout
    assert "its workers are replaced one by one" in done.stdout
    assert set(senders["pages"].answers) == {200}
    assert set(senders["app"].answers) == {200}
    assert set(senders["posts"].answers) == {422}
    assert responsive([socket]) == 1
    assert before[0] in haproxy_workers(cluster)[1:], "a new process; the old one keeps its streams"
    longest = {name: sender.longest for name, sender in senders.items()}
    assert max(longest.values()) < LONGEST, longest
    socket.close()
    assert "Campus" in page.get(login, timeout=TIMEOUT).text


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        # What compose.yaml sets by variables, such as the certificate, counts more than the file.
        ('listen_runners = "127.0.0.1:99999"', 1, "HAProxy refuses"),
        ("requests_at_one = 150", 2, "requests_at_one"),
    ],
)
def test_a_wrong_setting_changes_nothing(
    cluster: Cluster, line: str, status: int, words: str
) -> None:
    settings, config = (cluster.run("portal", "cat", file) for file in (SETTINGS, CONFIG))
    before = haproxy_workers(cluster)
    change_settings(cluster, line)
    try:
        done = slipway_apply(cluster)
    finally:
        cluster.ctl("put", "portal", SETTINGS, stdin=settings)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert cluster.run("portal", "cat", CONFIG) == config
    assert haproxy_workers(cluster)[0] == before[0]


def test_a_closed_app_stays_closed_over_reloads(
    cluster: Cluster, researcher: Api, session: Json, lab: Visitor
) -> None:
    assert lab.get("/api/status").status_code == 200
    researcher("DELETE", f"/sessions/{session['id']}/apps/jupyterlab")
    for _ in range(3):
        cluster.daemon("reload", "portal", "haproxy")
        for _ in range(20):
            assert lab.get("/api/status").status_code != 200
