"""`slipway apply` while the portal is used: nothing is refused, and no stream is cut."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import requests
from websockets.sync.client import ClientConnection

from tests.slurm.test_reload import alive, workers
from tests.support.client import TIMEOUT, Api, Json, Visitor, http_session
from tests.support.cluster import Cluster

SETTINGS = "/etc/slipway/slipway.toml"
EVERY = 0.1
"""Seconds between two requests; more of them would take the processor from the new processes."""
SIZE = 64 * 1024 * 1024
SECONDS = 500.0
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
    assert apply(cluster).returncode == 0
    yield
    cluster.ctl("put", "portal", SETTINGS, stdin=before)
    assert apply(cluster).returncode == 0


def apply(
    cluster: Cluster, *options: str, host: str = "portal"
) -> subprocess.CompletedProcess[str]:
    """Run the command as root."""
    return cluster.attempt("exec", host, "--", "slipway", "apply", *options, seconds=SECONDS)


def change(cluster: Cluster, *lines: str, section: str = "web", host: str = "portal") -> None:
    """Have these lines in a section; what an earlier attempt left is replaced."""
    text = cluster.run(host, "cat", SETTINGS)
    keys = {line.partition(" = ")[0] for line in lines}
    kept = [line for line in text.splitlines() if line.partition(" = ")[0] not in keys]
    place = kept.index(f"[{section}]") + 1
    kept[place:place] = lines
    cluster.ctl("put", host, SETTINGS, stdin="\n".join(kept) + "\n")


class Requests:
    """Somebody who sends the same request again and again, and notes the answers."""

    def __init__(self, send: Callable[[], requests.Response]) -> None:
        self.answers: Counter[int] = Counter()
        self.longest = 0.0
        self._send = send

    def run(self, stop: threading.Event) -> None:
        """Send until told to stop; raises what `requests` raises."""
        while not stop.wait(EVERY):
            begun = time.monotonic()
            self.answers[self._send().status_code] += 1
            self.longest = max(self.longest, time.monotonic() - begun)


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
        "pages": Requests(lambda: page.get(login, timeout=60)),
        "app": Requests(lambda: lab.get("/api/status", timeout=60)),
        "posts": Requests(lambda: posts.post(api, json={"name": 1}, timeout=60)),
    }
    socket: ClientConnection = lab.websocket(SOCKET)
    before, stop = workers(cluster), threading.Event()
    with ThreadPoolExecutor(4) as pool:
        file = pool.submit(download, cluster, researcher, stop)
        sending: list[Future[None]] = [pool.submit(each.run, stop) for each in senders.values()]
        try:
            time.sleep(1)
            change(cluster, 'site_name = "Campus"', "requests_at_once = 150")
            done = apply(cluster)
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
    assert alive([socket]) == 1
    assert before[0] in workers(cluster)[1:], "a new process; the old one keeps its streams"
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
    before = workers(cluster)
    change(cluster, line)
    try:
        done = apply(cluster)
    finally:
        cluster.ctl("put", "portal", SETTINGS, stdin=settings)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert cluster.run("portal", "cat", CONFIG) == config
    assert workers(cluster)[0] == before[0]


def test_a_closed_app_stays_closed_over_reloads(
    cluster: Cluster, researcher: Api, session: Json, lab: Visitor
) -> None:
    assert lab.get("/api/status").status_code == 200
    researcher("DELETE", f"/sessions/{session['id']}/apps/jupyterlab")
    for _ in range(3):
        cluster.daemon("reload", "portal", "haproxy")
        for _ in range(20):
            assert lab.get("/api/status").status_code != 200
