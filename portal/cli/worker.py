"""`slipway worker`: this host's tasks, and the site's while no other host's worker does them."""

from __future__ import annotations

from portal.adapters.db.hosts.lease import Fence
from portal.adapters.haproxy.agent import AgentSocket
from portal.config import Settings
from portal.core.hosts import LEASE_SECONDS, Holder
from portal.errors import PortalError
from portal.lease import Lease
from portal.services.owner_queue import OwnerQueue
from portal.wiring import lease_of, wire, workers_of
from portal.worker import Worker


class OnlyOneHost(PortalError):
    """Another host's worker runs, although the settings say that there is one host."""


def _refuse_others(holder: Holder | None, this_host: str) -> None:
    if holder and holder.silent < LEASE_SECONDS and holder.host != this_host:
        raise OnlyOneHost(
            f'a worker runs on {holder}, but state.hosts = "one": apps that are closed at one host '
            'would stay open at the other. Write hosts = "several" on all hosts'
        )


def run_worker(settings: Settings) -> None:
    """Run the worker of this host, and the site's while no other host's does.

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
