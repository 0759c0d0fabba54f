"""`slipway worker`: this host's tasks, and the site's while no other host's worker does them."""

from __future__ import annotations

import argparse
from functools import partial

from sqlalchemy.exc import SQLAlchemyError

from portal.adapters.backup.state import in_use
from portal.adapters.haproxy.agent import AgentSocket
from portal.config import Settings
from portal.core.hosts import LEASE_SECONDS, Holder
from portal.errors import DatabaseUnavailable, PortalError
from portal.lease import Lease
from portal.services.owner_queue import OwnerQueue
from portal.store.hosts import Fence
from portal.wiring import lease_of, wire, workers_of
from portal.worker import Worker, only_one


class OnlyOneHost(PortalError):
    """Another host's worker runs, although the settings say that there is only one host."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser("worker", help="poll Slurm's queue until stopped")
    parser.add_argument(
        "--meanwhile",
        action="store_true",
        help="one of several hosts: only follow the database for this host's HAProxy, until "
        "another worker of this host does; `slipway apply` uses it while it restarts the worker",
    )
    parser.set_defaults(action=_worker)


def _worker(settings: Settings, options: argparse.Namespace) -> int:
    if options.meanwhile:
        with in_use(settings.state):
            follow_meanwhile(settings)
        return 0
    with in_use(settings.state), only_one(settings.state.run, partial(_holder, settings)):
        run_worker(settings)
    return 0


def _holder(settings: Settings) -> str:
    """The host and process of the worker, from the database; "" if unknown."""
    try:
        return str(workers_of(settings)[0] or "")
    except (SQLAlchemyError, DatabaseUnavailable):
        return ""


def follow_meanwhile(settings: Settings) -> None:
    """Stand in for this host's worker, until the next one answers HAProxy, or until stopped."""
    services = wire(settings)
    if services.host_agent is None:
        return
    services.host_agent.follow()
    answers = AgentSocket(settings.state.run, services.host_agent.is_open)
    answers.start()
    Worker(services, OwnerQueue()).run_host_only(answers.is_replaced)


def _refuse_others(holder: Holder | None, this_host: str) -> None:
    if holder and holder.silent < LEASE_SECONDS and holder.host != this_host:
        raise OnlyOneHost(
            f'a worker runs on {holder}, but state.hosts = "one": apps that are closed at one host '
            'would stay open at the other. Write hosts = "several" on all hosts'
        )


def run_worker(settings: Settings) -> None:
    """Run this host's tasks, and the site's tasks while no other host's worker does.

    Raises OnlyOneHost.
    """
    state, queue = settings.state, OwnerQueue()
    fenced = not state.database_url.startswith("sqlite")
    if fenced and not state.several_hosts:
        _refuse_others(workers_of(settings)[0], state.this_host)
    fence = Fence()
    lease = Lease(lease_of(settings), state.this_host, fence.take, fenced=fenced)
    host_services = wire(settings)
    agent = host_services.host_agent
    answers = AgentSocket(state.run, agent.is_open) if agent else None
    if answers is not None:
        answers.start()
    try:
        services = wire(settings, queue, state.metrics, fence.check if fenced else None)
        Worker(services, queue, host_services, lease).run()
    finally:
        lease.release()
        if answers is not None:
            answers.stop()
