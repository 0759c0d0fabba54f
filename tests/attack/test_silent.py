"""Strangers who connect and say nothing, at each port that listens, keep nobody from anything.

The unit tests do the same with each program alone: templates/test_haproxy_ssh.py,
runner/test_gateway.py, runner/apps/test_ssh_listener.py and file_server/test_http.py.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.client import Api, Json, http_session, login
from tests.support.cluster import Cluster
from tests.support.delays import UserAtWork, slower, usual, worker
from tests.support.hostile_shells import duration
from tests.support.hubs import is_up
from tests.support.ssh_access import SshClient, client_of, open_ssh

__all__ = ["usual", "worker"]

EACH = 200
"""Connections at each port."""
HELD_SECONDS = 180
ROUNDS = 3
STOP = "/tmp/silent-end"
WORDS = ("", "SSH-2.0-x\r\n")
SILENTLY = """
import json, os, resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
stop, each, seconds, words = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4].encode()
doors, held, ends = json.load(sys.stdin), {}, time.monotonic() + seconds
while time.monotonic() < ends and not os.path.exists(stop):
    for host, port in doors:
        mine = held.setdefault((host, port), [])
        for _ in range(20):  # more than ten seconds bring back what was cut
            stream = socket.socket()
            stream.settimeout(2)
            try:
                stream.connect((host, port))
                stream.sendall(words)
            except OSError:
                pass
            mine.append(stream)
        while len(mine) > each:
            mine.pop(0).close()
    time.sleep(0.5)
print({f"{host}:{port}": len(mine) for (host, port), mine in held.items()})
"""
LISTENS = "ss -Htln | awk '{print $4}' | grep -v -e '^127[.]' -e '^.::1.:' | sed 's/.*://'"


def doors(cluster: Cluster, node: str, ssh_port: int) -> list[tuple[str, int]]:
    """The ports that listen on the network: of the portal, a session's node, and JupyterHub.

    Of a range, such as that of apps, only the first one; `ssh_port` is the session's.
    """
    found = [("portal", ssh_port)]
    for place in ["portal", "login", node] + (["hub"] if is_up(cluster) else []):
        ports = set(map(int, cluster.shell(place, LISTENS).split()))
        assert ports
        # sshd of the login node has bounds of its own (MaxStartups), which the site sets.
        found += [(place, port) for port in ports - {22} if port - 1 not in ports]
    return found


@contextlib.contextmanager
def silent(cluster: Cluster, places: list[tuple[str, int]], words: str) -> Iterator[None]:
    """Connections from a node, as another user, that send this at most."""
    argv = ("python3", "-c", SILENTLY, STOP, str(EACH), str(HELD_SECONDS), words)
    cluster.run("login", "rm", "-f", STOP)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(
            cluster.run, "login", *argv, user="bob", stdin=json.dumps(places),
            seconds=HELD_SECONDS + 60,
        )  # fmt: skip
        time.sleep(20)
        try:
            yield
            assert not held.done(), "the attack was over before the others had worked"
        finally:
            cluster.run("login", "touch", STOP, user="bob")
            held.result()


@pytest.fixture(scope="module")
def client(researcher: Api, session: Json, tmp_path_factory: pytest.TempPathFactory) -> SshClient:
    """Alice's computer, with SSH into her session."""
    folder = tmp_path_factory.mktemp("alice")
    return client_of(researcher, open_ssh(researcher, session["id"]), folder)


@pytest.fixture(scope="module")
def usual_ssh(client: SshClient) -> float:
    """Seconds of a command on a quiet cluster."""
    return statistics.median(duration(lambda: ssh(client)) for _ in range(ROUNDS))


def ssh(client: SshClient) -> None:
    """Run a command in the session."""
    done = client.ssh("echo inside")
    assert done.stdout == b"inside\n", done.stderr


@pytest.mark.parametrize("words", WORDS, ids=["nothing", "SSH's version"])
def test_strangers_who_are_silent_delay_nobody(
    cluster: Cluster,
    worker: UserAtWork,
    session: Json,
    client: SshClient,
    usual: dict[str, float],
    usual_ssh: float,
    words: str,
) -> None:
    node = worker.api.get(session["id"])["node"]
    quiet = {**usual, "ssh": usual_ssh}
    with silent(cluster, doors(cluster, node, int(client.endpoint["port"])), words):
        rounds = [{**worker.work(), "ssh": duration(lambda: ssh(client))} for _ in range(ROUNDS)]
        assert login(cluster, "alice")
        if is_up(cluster):
            assert http_session().get(f"{cluster.hub_url}/hub/login", timeout=20).status_code == 200
    worker.rest()
    assert not slower(rounds, quiet), (quiet, rounds)


def test_an_open_connection_stays_open(cluster: Cluster, client: SshClient) -> None:
    """Whoever has logged in gives way to nobody."""
    port = int(client.endpoint["port"])
    lines = "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 4; done"
    with silent(cluster, [("portal", port)], "SSH-2.0-x\r\n"):
        done = client.ssh(lines)
    assert done.stdout.split() == [str(number).encode() for number in range(1, 11)], done.stderr
