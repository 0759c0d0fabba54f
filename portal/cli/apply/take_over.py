"""Has the processes take new files over, in an order in which a failure leaves what was before."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from portal.adapters.haproxy.map_files import MapFiles
from portal.cli.apply import applied
from portal.cli.apply.applied import Applied
from portal.cli.apply.files import RenderedFile
from portal.cli.apply.plan import Plan
from portal.cli.apply.processes import Processes
from portal.cli.state.account import fail
from portal.config import Settings

UNCHANGED, HALF = 1, 3
RESTORED_SECONDS = 10.0
"""How long the worker may take to complete the file of the routes, in which HAProxy finds them."""

Step = tuple[str, str, Callable[[], str]]
"""A process, its digest in Applied, and its action, which returns what went wrong."""


def take_over(settings: Settings, plan: Plan, processes: Processes) -> int:
    """Reload and restart what must be; returns the exit status."""
    if plan.units and (problem := processes.reread_units()):
        return _back(plan, processes, f"systemd: {problem}")
    known, begun = plan.known, False
    for name, digest, action in _steps(settings, plan, processes):
        if problem := action():
            if name == "slipway-proxy" and not begun:
                return _back(plan, processes, f"{name}: {problem}")
            return _half(name, problem)
        known, begun = replace(known, **{digest: getattr(plan.wanted, digest)}), True
        running = processes.running()
        if digest == "web":
            known = replace(
                known, gunicorn=plan.wanted.gunicorn, web_process=running.get("web", "")
            )
        if digest == "worker":
            known = replace(known, worker_process=running.get("worker", ""))
        save(settings, known)
    if plan.new_proxy_unit:
        print("slipway-proxy.service holds from its next start; a restart now cuts open streams")
    print("Done: the portal runs as the settings say.")
    return 0


def _steps(settings: Settings, plan: Plan, processes: Processes) -> Iterator[Step]:
    """HAProxy comes first, since a failure of its reload changes nothing.

    But after an upgrade from a release that did not keep the file of the routes, the new worker
    has to write it before HAProxy begins with it.
    """
    routes = MapFiles(settings.state.run)
    late = not routes.is_complete()
    if plan.proxy and not late:
        yield "slipway-proxy", "proxy", processes.reload_proxy
    if plan.web:
        yield "slipway-web", "web", lambda: processes.renew_web(plan.new_gunicorn)
    if plan.worker:
        yield "slipway-worker", "worker", processes.restart_worker
    if plan.proxy and late:
        _await_routes(settings, routes)
        yield "slipway-proxy", "proxy", processes.reload_proxy


def undo(files: Sequence[RenderedFile]) -> None:
    """Have files as they were; what cannot be is named."""
    for file in files:
        try:
            file.undo()
        except OSError as error:
            print(f"slipway: {file.path} is still the new one: {error.strerror}", file=sys.stderr)


def _await_routes(settings: Settings, routes: MapFiles) -> None:
    """Wait until the worker has written all routes, if there is an HAProxy that has any."""
    deadline = time.monotonic() + RESTORED_SECONDS
    while Path(settings.state.run, "master.sock").exists() and time.monotonic() < deadline:
        if routes.is_complete():
            return
        time.sleep(0.1)


def _back(plan: Plan, processes: Processes, problem: str) -> int:
    undo([file for file in plan.files if file.differs])
    if plan.units:
        processes.reread_units()
    text = "The files are as before, and everything runs as before."
    fail(f"{problem}\n{text}")
    return UNCHANGED


def _half(name: str, problem: str) -> int:
    fail(
        f"{name}: {problem}\nThe files are written, and what was named before has taken them over; "
        f"{name} has not. Look at its log, and run `slipway apply` again."
    )
    return HALF


def save(settings: Settings, done: Applied) -> None:
    """Store what has been taken over."""
    try:
        applied.save(settings, done)
    except OSError as error:
        print(f"slipway: the next apply will do this again: {error}", file=sys.stderr)
