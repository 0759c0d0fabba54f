"""Reloads and restarts processes in an order in which a failure changes as little as possible."""

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
"""Time limit for the worker to write the file of routes that HAProxy reads."""

Step = tuple[str, str, Callable[[], str]]
"""A process, its digest's field in Applied, and its action, which returns an error message."""


def take_over(settings: Settings, plan: Plan, processes: Processes) -> int:
    """Reload and restart processes as planned; returns the exit status."""
    if plan.units and (problem := processes.reread_units()):
        return _back(plan, processes, f"systemd: {problem}")
    applied_now, changed = plan.applied, False
    for name, digest, action in _steps(settings, plan, processes):
        if problem := action():
            if name == "slipway-proxy" and not changed:
                return _back(plan, processes, f"{name}: {problem}")
            return _half(name, problem)
        applied_now = replace(applied_now, **{digest: getattr(plan.target, digest)})
        changed = True
        running = processes.running()
        if digest == "web":
            applied_now = replace(
                applied_now, gunicorn=plan.target.gunicorn, web_process=running.get("web", "")
            )
        if digest == "worker":
            applied_now = replace(applied_now, worker_process=running.get("worker", ""))
        save(settings, applied_now)
    if plan.new_proxy_unit:
        print("slipway-proxy.service holds from its next start; a restart now cuts open streams")
    print("Done: the portal runs as the settings say.")
    return 0


def _steps(settings: Settings, plan: Plan, processes: Processes) -> Iterator[Step]:
    """HAProxy comes first, since a failure of its reload changes nothing.

    But after an upgrade from a release without the file of routes, the new worker has to write it
    before HAProxy reads it.
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
    """Restore the previous files; report those that cannot be restored."""
    for file in files:
        try:
            file.undo()
        except OSError as error:
            print(f"slipway: {file.path} is still the new one: {error.strerror}", file=sys.stderr)


def _await_routes(settings: Settings, routes: MapFiles) -> None:
    """Wait until the worker has written all routes, if HAProxy runs."""
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


def save(settings: Settings, current: Applied) -> None:
    """Store the digests of the processes that were reloaded or restarted."""
    try:
        applied.save(settings, current)
    except OSError as error:
        print(f"slipway: the next apply will do this again: {error}", file=sys.stderr)
