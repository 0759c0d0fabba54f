"""Submits one session's job, and tells what Slurm does not know yet from what it refuses."""

from __future__ import annotations

from portal.core.cluster.gpu_offers import has_gres
from portal.core.interfaces.systems import Scheduler
from portal.core.session.session import Session
from portal.errors import GresUnknown, NodesUnknown, Unavailable
from portal.services.cluster import Cluster

NOT_YET = (
    "Slurm does not know the GPUs of its nodes yet, as in the first seconds after its restart. "
    "Try again in a few seconds. If it lasts, tell the administrators."
)
NO_NODES_YET = (
    "Slurm has not heard of its nodes yet, as in the first seconds after its restart. "
    "Try again in a few seconds. If it lasts, tell the administrators."
)


def submit_job(
    scheduler: Scheduler, cluster: Cluster, session: Session, spec: str, script: str
) -> str:
    """Submit the job and return its id; raises InvalidRequest, Unavailable, OutcomeUnknown."""
    try:
        return scheduler.submit(session.owner, session.id, spec, script)
    except GresUnknown as error:
        if is_known(cluster, session):
            raise Unavailable(NOT_YET) from error
        raise
    except NodesUnknown as error:
        if cluster.has_node_for(session):
            raise Unavailable(NO_NODES_YET) from error
        raise


def is_known(cluster: Cluster, session: Session) -> bool:
    """Whether nodes of the session's partition were last reported with the GPU it asks for."""
    return any(
        has_gres(session.gres, session.gpu_kind, group)
        for group in cluster.look().partitions
        if session.gres and session.partition in (None, group.name)
    )
