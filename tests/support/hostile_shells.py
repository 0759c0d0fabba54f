"""Hostile shells, homes and runners on a test cluster; all of it is removed afterwards."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import requests
from requests.structures import CaseInsensitiveDict

from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

# Each ends by itself after some minutes, in case a test could not remove it.
FLOOD = "echo $$ >> ~/.hostile; timeout 200 yes 0123456789012345678901234567890123456789"
DRIP = "echo $$ >> ~/.hostile; for i in $(seq 60); do printf .; sleep 3; done"
HANG = "echo $$ >> ~/.hostile; sleep 200"
LEAVE = "echo 'I am leaving'; exit 0"
FIFO = "fifo"
REAL_SBATCH = "/usr/bin/env PATH=/usr/local/bin:/usr/bin:/bin sbatch"
SHELLS = {"flood": FLOOD, "drip": DRIP, "hang": HANG, "leave": LEAVE, "fifo": FIFO}
"""Contents of ~/.bashrc, which sshd's shell reads before every command; "fifo" makes it a FIFO."""

_RESTORE = """
cd
rm -f .bashrc; [ ! -e .bashrc.kept ] || mv .bashrc.kept .bashrc
for pid in $(cat .hostile 2>/dev/null); do
  for child in $(pgrep -P "$pid") "$pid"; do kill -KILL "$child" 2>/dev/null; done
done
rm -rf .hostile .hostile-bin
true
"""


@contextmanager
def hostile_shell(cluster: Cluster, user: str, text: str) -> Iterator[None]:
    """Replace a user's ~/.bashrc for a while."""
    home = "cd; [ ! -e .bashrc ] || [ -e .bashrc.kept ] || mv .bashrc .bashrc.kept"
    put = "rm -f .bashrc; mkfifo .bashrc" if text == FIFO else "cat > .bashrc"
    try:
        cluster.run("login", "sh", "-c", f"{home}; {put}", user=user, stdin=text + "\n")
        yield
    finally:
        cluster.run("login", "sh", "-c", _RESTORE, user=user)


@contextmanager
def hostile_command(cluster: Cluster, user: str, name: str, script: str) -> Iterator[None]:
    """Replace one of Slurm's commands in a user's own PATH."""
    make = f"mkdir -p ~/.hostile-bin; cat > ~/.hostile-bin/{name}; chmod +x ~/.hostile-bin/{name}"
    with hostile_shell(cluster, user, "export PATH=$HOME/.hostile-bin:$PATH"):
        cluster.run("login", "sh", "-c", make, user=user, stdin=f"#!/bin/sh\n{script}\n")
        yield


def runner_pids(cluster: Cluster, session: Json) -> list[str]:
    """The processes of a session's runner on its node."""
    node, user = session["node"], session["owner"]
    find = f"pgrep -u {user} -f '[p]ortal.runner|[s]lipway.*runner|[r]unner/__main__|[-]m runner'"
    pids = cluster.shell(node, find, check=False).split()
    assert pids, cluster.shell(node, f"ps -u {user} -o pid,args", check=False)
    return pids


@contextmanager
def stopped_runner(cluster: Cluster, session: Json) -> Iterator[None]:
    """A session whose owner has sent its runner SIGSTOP."""
    node, user, pids = session["node"], session["owner"], runner_pids(cluster, session)
    try:
        cluster.run(node, "kill", "-STOP", *pids, user=user)
        yield
    finally:
        cluster.attempt("exec", "--user", user, node, "--", "kill", "-CONT", *pids)


@dataclass
class Storm:
    """Repeats a request from several threads until stopped."""

    send: Callable[[], requests.Response]
    many: int = 24
    pause: float = 0.05
    """Seconds between a response and the same thread's next request."""
    statuses: Counter[int] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)
    headers: list[CaseInsensitiveDict[str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._loop, daemon=True) for _ in range(self.many)]

    def __enter__(self) -> Storm:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)

    def _loop(self) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            with suppress(requests.RequestException):
                answer = self.send()
                self.statuses[answer.status_code] += 1
                self.texts.append(answer.text)
                self.headers.append(answer.headers)
            self.seconds.append(time.monotonic() - begun)
            time.sleep(self.pause)


def sender(api: Api, method: str, path: str, **options: object) -> Callable[[], requests.Response]:
    """A request of a user that opens its own connection each time."""
    header = {"Authorization": str(api.http.headers["Authorization"])}

    def send() -> requests.Response:
        one = Api(api.cluster, api.user)
        one.http.headers.update(header)
        with one.http:
            return one(method, path, **({"timeout": 90} | options))

    return send


def duration(action: Callable[[], object]) -> float:
    """Duration of a call in seconds."""
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


def memory_peak(cluster: Cluster) -> int:
    """Peak memory in MiB of the portal's largest web process since the last reset."""
    script = "for p in $(pgrep -f portal.wsgi); do grep VmHWM /proc/$p/status; done"
    lines = cluster.shell("portal", script).splitlines()
    return max(int(line.split()[1]) for line in lines) // 1024


def reset_memory_peak(cluster: Cluster) -> None:
    """Reset the peak counters."""
    cluster.shell(
        "portal", "for p in $(pgrep -f portal.wsgi); do echo 5 > /proc/$p/clear_refs; done"
    )


def stolen_token(cluster: Cluster, api: Api, **changes: Any) -> tuple[Json, str]:
    """A session and its runner's token, as its owner's own commands can see it."""
    keep = f'cat .slipway/sessions/*/spec.json >> ~/.stolen; exec {REAL_SBATCH} "$@"'
    try:
        with hostile_command(cluster, api.user, "sbatch", keep):
            session = api.launch(**changes)
        text = cluster.run("login", "sh", "-c", "cat ~/.stolen", user=api.user)
    finally:
        cluster.run("login", "sh", "-c", "rm -f ~/.stolen", user=api.user)
    specs = [json.loads(line) for line in text.splitlines()]
    spec = next(spec for spec in specs if session["id"] in json.dumps(spec))
    return session, str(spec["token"])


def wait_until_served(api: Api, seconds: float = 100) -> None:
    """Wait until a user's commands are executed again: a slow owner is paused."""
    send = sender(api, "GET", "/folders")

    def served() -> bool:
        # Each of the portal's processes keeps its own pause.
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: send(), range(4)))
        return all(answer.status_code == 200 for answer in answers)

    for _ in range(3):
        wait_for(f"{api.user}'s folders", served, seconds, 1)
