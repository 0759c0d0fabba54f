"""From a click to a usable app in a real browser over a slow network, and the bytes loaded for it.

    python -m bench.browser [--rounds 3] [--app jupyterlab] [--requests]

runs on the cluster of `make up`, or on the one that SLIPWAY_PROJECT and PORT name, with Debian's
Chromium. The network between the two has 20 Mbit/s and 40 ms, emulated by the browser itself
(Network.emulateNetworkConditions of the Chrome DevTools Protocol). The app's server is running
already: its start is what bench.launch measures.

Each round is a new browser profile: the first click, the second click in another tab, and a click
on the same app of the next session. Shown are the seconds until the app is usable and the bytes
transferred over the network for it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Page, sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support.client import Api, Visitor, login
from tests.support.cluster import Cluster

MBIT_PER_SECOND = 20
LATENCY_MS = 40
USABLE = {
    "jupyterlab": ".jp-LauncherCard >> nth=0",
    "notebook": ".jp-DirListing-content",
    "terminal": ".xterm-screen",
    "code-server": ".monaco-workbench",
}
"""What is visible once an app is usable."""
RESOURCES = {"cpus": 2, "memory": "1200m"}


@dataclass
class Load:
    """The load after one click."""

    seconds: float = 0
    bytes: int = 0
    requests: int = 0
    requested: Counter[str] = field(default_factory=Counter)
    """Bytes by path, without cache hits."""


class Meter:
    """Counts what a page loads."""

    def __init__(self, context: BrowserContext, page: Page) -> None:
        self.load = Load()
        self._paths: dict[str, str] = {}
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.send(
            "Network.emulateNetworkConditions",
            {
                "offline": False,
                "latency": LATENCY_MS,
                "downloadThroughput": MBIT_PER_SECOND * 1e6 / 8,
                "uploadThroughput": MBIT_PER_SECOND * 1e6 / 8,
            },
        )
        session.on("Network.responseReceived", self._answered)
        session.on("Network.loadingFinished", self._loaded)

    def _answered(self, event: dict[str, Any]) -> None:
        answer = event["response"]
        if not answer.get("fromDiskCache") and not answer["url"].startswith("data:"):
            self._paths[event["requestId"]] = urlsplit(answer["url"]).path

    def _loaded(self, event: dict[str, Any]) -> None:
        size = int(event["encodedDataLength"])
        path = self._paths.get(event["requestId"])
        if path is not None and size:
            self.load.bytes += size
            self.load.requests += 1
            self.load.requested[path] += size


def click(context: BrowserContext, api: Api, session: str, app: str) -> Load:
    """Open the app in a new tab, as its owner does, and wait until it is usable."""
    page = context.new_page()
    meter = Meter(context, page)
    start = time.monotonic()
    page.goto(api.ask("POST", f"/sessions/{session}/apps/{app}")["url"], wait_until="commit")
    page.locator(USABLE[app]).wait_for(timeout=60_000)
    meter.load.seconds = time.monotonic() - start
    page.wait_for_timeout(1500)  # late requests count as well
    page.close()
    return meter.load


def running(api: Api, app: str) -> str:
    """A session whose app is running already."""
    session: str = api.running(resources=RESOURCES)["id"]
    visitor = Visitor(api.ask("POST", f"/sessions/{session}/apps/{app}")["url"])
    visitor.enter()
    return session


def one_round(api: Api, app: str) -> list[Load]:
    """First click, second click, next session, in one new profile."""
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=FLAGS
        )
        try:
            session = running(api, app)
            loads = [click(context, api, session, app) for _ in range(2)]
            api.clean()
            loads.append(click(context, api, running(api, app), app))
            return loads
        finally:
            context.close()
            api.clean()


def report(rounds: list[list[Load]]) -> str:
    """The medians as text."""
    lines = [f"{len(rounds)} rounds, medians    seconds      MB   requests"]
    for index, title in enumerate(("first click", "second click", "next session")):
        loads = [loads[index] for loads in rounds]
        seconds = statistics.median(load.seconds for load in loads)
        size = statistics.median(load.bytes for load in loads) / 1e6
        count = statistics.median(load.requests for load in loads)
        lines.append(f"{title:20} {seconds:9.2f} {size:7.2f} {count:10.0f}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--app", choices=sorted(USABLE), default="jupyterlab")
    parser.add_argument("--requests", action="store_true", help="name what was loaded")
    options = parser.parse_args()
    cluster = Cluster.from_environment()
    api = Api(cluster, "alice", login(cluster, "alice"))
    rounds = [one_round(api, options.app) for _ in range(options.rounds)]
    print(report(rounds))
    if options.requests:
        for load in rounds[-1]:
            print(f"\n{load.requests} requests")
            for path, size in load.requested.most_common():
                print(f"{size:10d} {path}")


if __name__ == "__main__":
    main()
