"""The cost of HAProxy's route map: 10,000 routes against those of one session.

    python -m bench.route_map [--routes 10000] [--rounds 5]

needs haproxy, and no cluster: HAProxy has the rendered configuration, the services are the real
ones, the database is SQLite in a temporary folder.

Printed: processor time of this process and of HAProxy, with few routes present and with many, and
their ratio: for one change, and for the worker's comparison of the map with the database; and for
adding all of them, while another process opens apps.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import multiprocessing
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from sqlmodel import Session as Database

from bench.routes import children, front_config, prepare_site, wait_for
from portal.adapters.haproxy.map_files import CANARY, ROUTES, MapFiles
from portal.adapters.haproxy.runtime_api import Haproxy
from portal.config import Settings, load_settings
from portal.core.apps.access import AppState, Grant
from portal.core.auth.person import Person, hash_secret
from portal.core.session.session import State
from portal.errors import PortalError, Unavailable
from portal.services.assembly import Services
from portal.store.engine import open_database
from portal.store.sessions import SessionStore
from portal.store.tables import AppRow, GrantRow, SessionRow
from portal.wiring import now, wire

PORTS = "apps_ports = [9010, 9013]\nssh_ports = [9020, 9023]"
BROWSERS = 20
"""Grants of each session."""
APP = "jupyterlab"


@dataclass
class Cost:
    """Processor time in seconds: of this process, and of HAProxy."""

    portal: float = float("inf")
    haproxy: float = float("inf")

    def least(self, other: Cost) -> Cost:
        """The lower of each."""
        return Cost(min(self.portal, other.portal), min(self.haproxy, other.haproxy))


class Site:
    """A portal's services and its HAProxy, with sessions and grants in the database."""

    def __init__(self, folder: Path) -> None:
        self.settings = prepare_site(folder, PORTS)
        self.folder = folder
        self.services: Services = wire(self.settings)
        self.run = Path(self.settings.state.run)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start HAProxy as its unit does: without routes."""
        for name in ("routes", "background", "hub"):
            (self.run / f"{name}.map").write_bytes(b"")
        config = self.folder / "haproxy.cfg"
        config.write_text(front_config(self.folder))
        master = self.run / "master.sock"
        self._process = subprocess.Popen(
            ["haproxy", "-W", "-db", "-q", "-S", f"{master},mode,600", "-f", str(config)]
        )

        def answers() -> bool:
            with contextlib.suppress(PortalError):
                return bool(Haproxy(str(self.run)).newest())
            return False

        wait_for(lambda: master.exists() and answers(), "HAProxy")

    def stop(self) -> None:
        """Stop HAProxy."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()

    def haproxy_seconds(self) -> float:
        """Processor time of HAProxy's processes."""
        assert self._process is not None
        pids = [self._process.pid, *children(self._process.pid)]
        return (
            sum(
                int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
                for pid in pids
                for task in os.listdir(f"/proc/{pid}/task")
            )
            / 1e9
        )

    def cost(self, action: Callable[[], object], times: int = 1) -> Cost:
        """The processor time of an action, divided by `times`."""
        haproxy, portal = self.haproxy_seconds(), time.process_time()
        action()
        portal = time.process_time() - portal
        return Cost(portal / times, (self.haproxy_seconds() - haproxy) / times)


def cookie(number: int) -> str:
    """The hash of a browser's cookie."""
    return hash_secret(f"cookie {number}")


def session_id(number: int) -> str:
    """The id of the session of a browser."""
    return f"{number // BROWSERS:032x}"


def label(number: int) -> str:
    """The label of its app's origin."""
    return f"a{number // BROWSERS:015x}"


def key(number: int) -> str:
    """The key of a browser's route."""
    return f"{label(number)}.{cookie(number)}"


def store(settings: Settings, first: int, last: int) -> None:
    """Store grants, with their sessions and apps."""
    engine = open_database(settings.state.database_url)
    with Database(engine) as db:
        for number in range(first, last):
            session, user = session_id(number), f"user{number // BROWSERS}"
            if number % BROWSERS == 0:
                db.add(_session(session, user, number))
                db.add(AppRow(session=session, app=APP, label=label(number), state=AppState.READY))
            grant = Grant(cookie(number), label(number), session, APP, user, f"l{number}", now())
            db.add(GrantRow(**vars(grant)))
        db.commit()
    engine.dispose()


def _session(id: str, owner: str, number: int) -> SessionRow:
    then = now() - timedelta(hours=1)
    return SessionRow(
        id=id, name=f"s{number}", owner=owner, environment="python", version="3.13", cpus=1,
        memory_mb=1000, state=State.RUNNING, created=then, token_hash="", submitted=then,
        attempts=1, job_id=str(number), node="n1", address="10.0.0.1",
        port=20000 + number // BROWSERS, ready=then,
    )  # fmt: skip


def measure(site: Site, present: int, rounds: int) -> dict[str, Cost]:
    """Costs with so many routes present; the last session's are removed and added."""
    proxy = site.services.proxy
    proxy.restore()
    opened = SessionStore(open_database(site.settings.state.database_url)).get(
        session_id(present - 1)
    )
    assert opened is not None
    keys = [key(number) for number in range(present - BROWSERS, present)]

    def add() -> None:
        for each in keys:
            proxy.add_route(each, opened, APP)

    def remove() -> None:
        for each in keys:
            proxy.revoke(each)

    actions: dict[str, tuple[Callable[[], object], int]] = {
        "remove a route": (remove, BROWSERS),
        "add a route": (add, BROWSERS),
        "compare, nothing changed": (proxy.check_routes, 1),
    }
    costs = dict.fromkeys(actions, Cost())
    proxy.check_routes()
    for _ in range(rounds):
        for name, (action, times) in actions.items():
            costs[name] = costs[name].least(site.cost(action, times))
    return costs


def lose_routes(site: Site, how: str) -> Callable[[], object]:
    """Take all routes away; returns what restores them."""
    if how == "after a restart":
        site.stop()
        site.start()
        return site.services.proxy.restore
    run = str(site.run)
    with MapFiles(run).exclusively():
        routes = f"{run}/{ROUTES}"
        MapFiles(run).write(ROUTES, {})
        Haproxy(run).ask(f"clear map {routes}", f"add map {routes} {CANARY} 1")
    return site.services.proxy.check_routes


def open_apps(config: str, waits: Connection) -> None:
    """Open apps, one after the other, from one message to the next; send how long each took."""
    services = wire(load_settings(config))
    opened = services.sessions.get(Person("user0", True, ""), session_id(0))
    took, refused, number = [], 0, 0
    waits.send("ready")
    waits.recv()
    while not waits.poll(0.005):
        start = time.monotonic()
        try:
            services.proxy.add_route(key(number), opened, APP)
        except Unavailable:
            refused += 1
        took.append(time.monotonic() - start)
        number = (number + 1) % BROWSERS
    waits.send((took, refused))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        site.start()
        try:
            store(site.settings, 0, BROWSERS)
            few = measure(site, BROWSERS, options.rounds)
            store(site.settings, BROWSERS, options.routes)
            many = measure(site, options.routes, options.rounds)
            print(f"milliseconds of processor time: {BROWSERS} routes, {options.routes}, ratio")
            for name, cost in many.items():
                print(line(name, few[name], cost))
            for how in ("after a restart", "while it runs"):
                print_refill(site, how, options.routes)
        finally:
            site.stop()


def line(name: str, few: Cost, many: Cost) -> str:
    """Portal and HAProxy, for few routes and for many."""
    parts = [
        f"{part} {before * 1e3:7.2f} {after * 1e3:8.2f} {after / before:6.1f}"
        for part, before, after in (
            ("portal", few.portal, many.portal),
            ("HAProxy", few.haproxy, many.haproxy),
        )
    ]
    return f"{name:26} " + "   ".join(parts)


def print_refill(site: Site, how: str, routes: int) -> None:
    """Refill while another process opens apps."""
    here, there = multiprocessing.Pipe()
    config = str(site.folder / "slipway.toml")
    other = multiprocessing.get_context("spawn").Process(target=open_apps, args=(config, there))
    other.start()
    here.recv()
    restore = lose_routes(site, how)
    here.send("start")
    start = time.monotonic()
    cost = site.cost(restore)
    seconds = time.monotonic() - start
    here.send("stop")
    took, refused = here.recv()
    other.join()
    print(
        f"{routes} routes {how}: portal {cost.portal * 1e3:.0f} ms, HAProxy "
        f"{cost.haproxy * 1e3:.0f} ms; {len(took)} apps opened meanwhile, {refused} of them "
        f"refused, the slowest in {max(took) / seconds:.0%} of that time"
    )


if __name__ == "__main__":
    main()
