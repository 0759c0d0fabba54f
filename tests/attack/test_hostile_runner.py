"""A runner belongs to its session's owner: it may storm, lie, stop, drip. Only its owner waits."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.slurm.conftest import MakeApi
from tests.support.apps import Kernel
from tests.support.client import OVER, Api, Json, http_session
from tests.support.cluster import Cluster
from tests.support.hostile_shells import Storm, duration, sender, stolen_token, stopped_runner

SMALLEST: Json = {"resources": {"cpus": 1, "memory": "300m"}}
USUAL = 6.0
"""Seconds; the attacks cost 10 and more."""

CALLS = """
import json, ssl, sys, threading, time, urllib.error, urllib.request
where, token, seconds, threads, body = sys.argv[1:6]
context = ssl.create_default_context(cadata=sys.stdin.read())
context.verify_flags &= ~ssl.VERIFY_X509_STRICT
end, found, later = time.monotonic() + float(seconds), {}, []
def loop():
    while time.monotonic() < end:
        request = urllib.request.Request(where, body.encode(), {"Authorization": f"Bearer {token}",
                                         "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                status = answer.status
        except urllib.error.HTTPError as error:
            status = error.code
            if status == 429:
                later.append(error.headers["Retry-After"])
        except OSError:
            status = 0
        found[status] = found.get(status, 0) + 1
every = [threading.Thread(target=loop) for _ in range(int(threads))]
[each.start() for each in every]; [each.join() for each in every]
print(json.dumps({"statuses": found, "later": sorted(set(later))}))
"""


class Runner:
    """A holder of the token of a session's runner, on a compute node."""

    def __init__(self, cluster: Cluster, session: Json, token: str) -> None:
        self._cluster = cluster
        self.session = session
        self._token = token
        self._ca = cluster.run("portal", "cat", "/var/lib/slipway/ca/gateway_ca.pem")

    def __call__(self, what: str, body: Json, seconds: float = 0.01, threads: int = 1) -> Any:
        """Report repeatedly for `seconds` from `threads` threads; the number of each response."""
        where = f"https://portal:8443/runner/v1/sessions/{self.session['id']}/{what}"
        words = [where, self._token, str(seconds), str(threads), json.dumps(body)]
        text = self._cluster.run(
            "n1", "python3", "-c", CALLS, *words, user="bob", stdin=self._ca, seconds=seconds + 60
        )
        return json.loads(text)


@pytest.fixture
def runner(cluster: Cluster, bob: Api) -> Runner:
    """A running session of bob's, and its token."""
    session, token = stolen_token(cluster, bob, **SMALLEST)
    return Runner(cluster, bob.wait_state(session["id"], "RUNNING"), token)


def ready(session: Json) -> Json:
    """The runner's report that it is ready."""
    return {"job_id": session["job_id"], "node": session["node"], "port": 39999, "csr": "none",
            "apps": []}  # fmt: skip


@pytest.mark.timeout(200)
def test_a_storm_of_callbacks_costs_slurm_nothing(
    runner: Runner, make_api: MakeApi, cluster: Cluster
) -> None:
    """L5: 24 loops of `ready` were 625 squeues in 14 s, and alice's launch took 11.7 s."""
    alice = make_api("alice")
    with ThreadPoolExecutor(1) as pool:
        storm = pool.submit(runner, "ready", ready(runner.session), 8.0, 24)
        seconds = [duration(lambda: alice.launch(**SMALLEST)), duration(alice.list)]
        answers = storm.result()
    alice.clean()
    # By the portal, and with many in parallel by HAProxy, which finally closes the connections.
    throttled = answers["statuses"].pop("429") + answers["statuses"].pop("0", 0)
    assert throttled > 10 * sum(answers["statuses"].values()), answers
    assert sum(answers["statuses"].values()) < 40, answers
    assert set(answers["later"]) <= {"1", "10"}
    assert max(seconds) < USUAL, seconds


def test_infinity_is_never_shown(runner: Runner, bob: Api, admin: Api) -> None:
    """L4, E39: `"cpu_percent":Infinity` in the owner's and the administrators' lists."""
    usage = {"memory_bytes": 1, "oom_kills": 0, "apps": {}}
    bad: list[Json] = [
        {"cpu_seconds": 1.7e308}, {"cpu_seconds": 1e13}, {"memory_bytes": 2**62},
        {"gpu_percent": 1e300}, {"cpu_seconds": -1},
    ]  # fmt: skip
    for each in bad:
        answers = runner("usage", {"cpu_seconds": 0.0} | usage | each)
        assert set(answers["statuses"]) <= {"422", "429"}, (each, answers)
    for seconds in (0.0, 9e11):
        runner("usage", {"cpu_seconds": seconds} | usage)
    for api in (bob, admin):
        text = api("GET", "/sessions").text
        rows = json.loads(text, parse_constant=refuse)["sessions"]
        (row,) = [one for one in rows if one["id"] == runner.session["id"]]
        percent = (row["usage"] or {}).get("cpu_percent") or 0
        assert 0 <= percent <= 800, row["usage"]


def refuse(name: str) -> None:
    """Called for constants that are not valid JSON."""
    raise AssertionError(f"{name} is not JSON")


DRIPPING = """
import os, socket, threading, time
def drip(stream):
    with stream:
        try:
            for byte in b"HTTP/1.1 200 OK" * 20:
                stream.sendall(bytes([byte])); time.sleep(2)
        except OSError:
            pass
def serve():
    while True:
        stream, _ = server.accept()
        threading.Thread(target=drip, args=(stream,), daemon=True).start()
path = os.path.dirname(os.environ["SLIPWAY_RUN"]) + "/control.sock"
os.rename(path, path + ".real")
server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen(64)
threading.Thread(target=serve, daemon=True).start()
print(1)
"""


@pytest.mark.timeout(300)
def test_a_dripping_runner_holds_no_threads(alice: Api, bob: Api, cluster: Cluster) -> None:
    """H3: the limit of five seconds applied to each read, and the runner belongs to its owner."""
    session = bob.running()
    kernel = Kernel(bob.open(session["id"], "jupyterlab"))
    assert kernel.value(DRIPPING) == 1
    opening = sender(bob, "POST", f"/sessions/{session['id']}/apps/terminal")
    with Storm(opening) as storm:
        seconds = [duration(alice.list) for _ in range(6)]
        seconds.append(duration(lambda: http_session().get(f"{cluster.url}/login", timeout=60)))
    kernel.close()
    assert max(seconds) < USUAL, seconds
    assert max(storm.seconds) < 15, max(storm.seconds)


@pytest.mark.timeout(300)
def test_a_stopped_runner_holds_no_threads(alice: Api, bob: Api, cluster: Cluster) -> None:
    """H3 c: its owner sends it SIGSTOP, opens apps and ends the session."""
    session = bob.running()
    with stopped_runner(cluster, session):
        opening = sender(bob, "POST", f"/sessions/{session['id']}/apps/terminal")
        with Storm(opening) as storm:
            seconds = [duration(alice.list) for _ in range(6)]
            hers = alice.launch(**SMALLEST)["id"]
            alice.stop(hers)
            alice.wait_state(hers, *OVER)
        bob.stop(session["id"])
        bob.wait_state(session["id"], *OVER, seconds=60)
    assert max(seconds) < USUAL, seconds
    assert max(storm.seconds) < 15, max(storm.seconds)
