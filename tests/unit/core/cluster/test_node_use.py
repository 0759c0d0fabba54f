"""Who holds what on which node."""

from __future__ import annotations

from portal.core.cluster.inventory import Node
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.cluster.node_use import UserAllocation, measure_nodes, overview

NODES = [
    Node("n1", "main", 4, 8000, True),
    Node("n1", "short", 4, 8000, True),
    Node("n2", "main", 4, 8000, False),
]


def job(user: str, nodes: tuple[str, ...], cpus: int, state: JobState) -> JobReport:
    """A job with a GiB on its nodes."""
    return JobReport("1", user, state, nodes=nodes, cpus=cpus, memory_mb=1024)


def test_jobs_are_summed_up_by_node_and_user() -> None:
    jobs = [
        job("alice", ("n1",), 1, JobState.RUNNING),
        job("alice", ("n1", "n2"), 4, JobState.RUNNING),
        job("bob", ("n1",), 1, JobState.COMPLETING),
        job("bob", ("n1",), 1, JobState.PENDING),
        job("eve", ("gone",), 1, JobState.RUNNING),
    ]
    first, second = measure_nodes(jobs, NODES)
    assert (first.name, first.partitions, first.usable) == ("n1", ("main", "short"), True)
    assert first.held == (
        UserAllocation("alice", 3, 1536, jobs=2),
        UserAllocation("bob", 1, 1024, jobs=1),
    )
    assert (first.taken.cpus, first.taken.memory_mb) == (4, 2560)
    assert second.held == (UserAllocation("alice", 2, 512, jobs=1),)
    found = overview([first, second])
    assert [(one.user, one.cpus) for one in found.users] == [("alice", 5), ("bob", 1)]
    assert (found.usable, found.capacity.cpus, found.taken.cpus) == (1, 4, 6)
