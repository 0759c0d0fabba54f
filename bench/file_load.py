"""The portal while twenty large files go up and down: its Sessions page, and its memory.

    python -m bench.file_load [--transfers 20] [--rate 5] [--seconds 20]

runs on the cluster that SLIPWAY_PROJECT and PORT name. Half of the transfers are downloads, half
are uploads, by curl, each at `rate` MiB/s. Printed: the 95th percentile of GET /sessions before
and during the transfers and their ratio, and the memory (RSS) of gunicorn, worker and HAProxy
before and at its highest during them. Clients, portal and login node share the machine's
processors, so the rate should leave some to spare.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from pathlib import Path

from tests.support.client import Api, Browser, login
from tests.support.cluster import Cluster

USER = "alice"
BIG = "storage/bench-big"
MEBIBYTE = 1 << 20
PROCESSES = {"gunicorn": "gunicorn", "worker": "worker", "haproxy": "haproxy"}


def p95(browser: Browser, seconds: float) -> float:
    """The 95th percentile of GET /sessions, in milliseconds; four a second."""
    milliseconds = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.perf_counter()
        browser.get("/sessions").raise_for_status()
        milliseconds.append((time.perf_counter() - start) * 1000)
        time.sleep(0.25)
    return statistics.quantiles(milliseconds, n=20)[-1]


def memory(cluster: Cluster) -> dict[str, int]:
    """RSS of the portal's programs in MiB, all processes of each together."""
    script = "ps -eo rss=,args= | grep -v -e grep -e 'sh -c'"
    lines = cluster.shell("portal", script).splitlines()
    return {
        name: sum(int(line.split()[0]) for line in lines if word in line) // 1024
        for name, word in PROCESSES.items()
    }


class Transfers:
    """Downloads and uploads by curl, which go on until they are stopped."""

    def __init__(self, cluster: Cluster, api: Api, count: int, rate: float) -> None:
        token = str(api.http.headers["Authorization"])
        self._curl = [
            "curl",
            "-s",
            "-k",
            "-H",
            f"Authorization: {token}",
        ]
        self._curl += ["--limit-rate", f"{rate * MEBIBYTE:.0f}"]
        self._url, self._count = f"{cluster.url}/data/files", count
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Transfers:
        for number in range(self._count):
            words = ["-o", "/dev/null", f"{self._url}/{BIG}"]
            if number % 2:
                words = ["-T", "-", f"{self._url}/{BIG}-{number}"]
            with Path("/dev/zero").open("rb") as zeros:
                self._running.append(subprocess.Popen([*self._curl, *words], stdin=zeros))
        return self

    def __exit__(self, *_: object) -> None:
        ended = [curl.returncode for curl in self._running if curl.poll() is not None]
        for curl in self._running:
            curl.kill()
            curl.wait()
        assert not ended, f"transfers ended early: {ended}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--transfers", type=int, default=20)
    parser.add_argument("--rate", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    cluster = Cluster.from_environment()
    api, browser = Api(cluster, USER, login(cluster, USER)), Browser(cluster, USER)
    cluster.shell("login", f"mkdir -p ~/storage; truncate -s 8G ~/{BIG}", user=USER)
    try:
        api.http.get(f"{cluster.url}/data/files/{BIG}", stream=True, timeout=30).close()
        idle, before = p95(browser, arguments.seconds), memory(cluster)
        highest = dict(before)
        with Transfers(cluster, api, arguments.transfers, arguments.rate):
            samples = []
            for _ in range(4):
                samples.append(p95(browser, arguments.seconds / 4))
                now = memory(cluster)
                highest = {name: max(highest[name], now[name]) for name in now}
        busy = statistics.median(samples)
        print(
            f"GET /sessions, p95: {idle:.0f} ms idle, {busy:.0f} ms during; ratio {busy / idle:.2f}"
        )
        for name in before:
            print(f"{name}: {before[name]} MiB before, {highest[name]} MiB at its highest")
    finally:
        cluster.shell("login", f"rm -f ~/{BIG} ~/{BIG}-*", user=USER)


if __name__ == "__main__":
    main()
