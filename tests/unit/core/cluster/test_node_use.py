"""Who holds what on which node."""

from __future__ import annotations

from portal.core.cluster.inventory import Node
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.cluster.node_list import short_names, summarize
from portal.core.cluster.node_use import UserAllocation, measure_nodes, users_of

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
    users = users_of([first, second])
    assert [(one.user, one.cpus) for one in users] == [("alice", 5), ("bob", 1)]
    found = summarize([first, second], users)
    assert (found.usable, found.capacity.cpus, found.taken.cpus) == (1, 8, 6)
    assert [(group.name, group.nodes, group.taken.cpus) for group in found.partitions] == [
        ("main", 2, 6),
        ("short", 1, 4),
    ]


def test_nodes_out_of_service_are_grouped_by_state_and_reason() -> None:
    nodes = [
        Node(f"n{number:02}", "main", 4, 8000, usable, state=state, reason=reason)
        for number, usable, state, reason in (
            (1, False, "down*", ""),
            (2, False, "idle+drain", "disk"),
            (3, False, "idle+drain", "disk"),
            (4, False, "down*", ""),
            (5, True, "idle", ""),
            (6, False, "down*", ""),
            (9, False, "idle+drain", "disk"),
        )
    ]
    found = summarize(measure_nodes([], nodes), [])
    assert (found.usable, found.capacity.cpus) == (1, 28), "jobs still run on drained nodes"
    assert [(row.reason, row.state, row.nodes, row.names) for row in found.out_of_service] == [
        ("disk", "idle+drain", 3, "n[02-03],n09"),
        ("", "down*", 3, "n01,n04,n06"),
    ]


def test_long_lists_of_names_are_cut() -> None:
    names = short_names(f"n{number}x" for number in range(1000))
    assert names.startswith("n0x,n100x,")
    assert names.endswith(",...")
    assert len(names) <= 210
    assert short_names(["login", "n9", "n10", "n11", "n010"]) == "login,n9,n[10-11],n010"
