"""The two bars: what is held, permitted, and free for the user now."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from portal.core.cluster.inventory import Node, Partition
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.cluster.limits import Association, Limits, PartitionAccess, Qos, Tres
from portal.core.cluster.meters import partition_usage, usage_meters
from portal.core.cluster.usage import ClusterUsage, measure_usage

NODES = [
    Node("n1", "main", 4, 8000, True),
    Node("n2", "main", 4, 8000, True),
    Node("n3", "main", 64, 8000, False),
    Node("n2", "gpu", 4, 8000, True),
]
LIMITS = Limits(
    enforced=("associations", "limits"),
    default_accounts={"alice": "lab", "bob": "lab"},
    associations=(
        Association("lab", "alice", default_qos="normal"),
        Association("lab", "bob", default_qos="normal"),
        Association("lab", group=Tres(cpus=6)),
    ),
    qos=(Qos("normal", user=Tres(3, 3072)),),
    partitions=(PartitionAccess("main"), PartitionAccess("gpu")),
)


def job(
    user: str = "alice",
    node: str = "n1",
    cpus: int = 1,
    memory: int = 1024,
    state: JobState = JobState.RUNNING,
    partition: str = "main",
) -> JobReport:
    """A job of a user on a node."""
    return JobReport(
        "1", user, state, nodes=(node,), partition=partition, account="lab", qos="normal",
        cpus=cpus, memory_mb=memory,
    )  # fmt: skip


def cpus(use: ClusterUsage, user: str = "alice", limits: Limits | None = LIMITS) -> tuple[int, ...]:
    """A user's cores in main: held, permitted, available."""
    meter = usage_meters(user, "main", limits, use)[0]
    assert meter.allowed is not None and meter.available is not None
    return meter.mine, meter.allowed, meter.available


def test_nothing_held() -> None:
    assert cpus(measure_usage([], NODES)) == (0, 3, 3)
    assert cpus(measure_usage([], NODES), limits=None) == (0, 8, 8)  # n3 is unavailable


def test_only_what_is_allocated_counts() -> None:
    jobs = [job(), job(state=JobState.PENDING), job(state=JobState.COMPLETED)]
    assert cpus(measure_usage(jobs, NODES)) == (1, 3, 2)
    assert cpus(measure_usage([job(state=JobState.COMPLETING)], NODES))[0] == 1


def test_memory_is_measured_like_cores() -> None:
    memory = usage_meters("alice", "main", LIMITS, measure_usage([job(memory=2048)], NODES))[1]
    assert (memory.mine, memory.allowed, memory.available) == (2048, 3072, 1024)
    assert (round(memory.upper or 0), round(memory.lower or 0)) == (67, 67)


def test_jobs_of_others_reduce_shared_limits() -> None:
    busy = measure_usage([job(), job("bob", cpus=4)], NODES)
    assert cpus(busy) == (1, 3, 1)  # the account's six cores
    full = measure_usage([job("root", "n1", 4), job("root", "n2", 3)], NODES)
    assert cpus(full, limits=None) == (0, 8, 1)


def test_jobs_in_other_groups_count_towards_the_users_limit_only() -> None:
    use = measure_usage([job(), job(partition="gpu", node="n2")], NODES)
    assert cpus(use) == (1, 3, 1)


def test_unknown_capacity_without_limits_is_reported() -> None:
    meter = usage_meters("alice", "main", None, measure_usage([job()], []))[0]
    assert (meter.mine, meter.allowed, meter.available) == (1, None, None)
    assert (meter.upper, meter.lower) == (None, None)


def test_the_group_must_be_open() -> None:
    parts = [
        Partition("main", True, True, 4, 8000, None),
        Partition("gpu", False, True, 4, 8, None),
    ]
    use = measure_usage([], NODES)
    found = partition_usage("alice", None, parts, LIMITS, use)
    assert found and (found.group, found.groups) == ("main", ("main", "gpu"))
    assert (found := partition_usage("alice", "gpu", parts, LIMITS, use)) and found.group == "gpu"
    assert partition_usage("alice", "nix", parts, LIMITS, use) is None
    assert partition_usage("stranger", None, parts, LIMITS, use) is None


sizes = st.tuples(
    st.sampled_from(["alice", "bob"]), st.sampled_from(["n1", "n2"]), st.integers(1, 3)
)


@given(st.lists(sizes, max_size=12), sizes)
def test_one_job_raises_and_its_end_lowers_by_the_same(
    others: list[tuple[str, str, int]], mine: tuple[str, str, int]
) -> None:
    rest = [job(user, node, size) for user, node, size in others]
    one = job("alice", mine[1], mine[2])
    before, during = (
        usage_meters("alice", "main", LIMITS, measure_usage(j, NODES))[:2]
        for j in (rest, [*rest, one])
    )
    assert during[0].mine - before[0].mine == mine[2]
    assert during[1].mine - before[1].mine == 1024
    for meter in (*before, *during):
        assert 0 <= (meter.upper or 0) <= 100
        assert 0 <= (meter.lower or 0) <= 100
        assert (meter.available or 0) >= 0
    assert (during[0].available or 0) <= (before[0].available or 0)


def parts(use: ClusterUsage, user: str = "alice", group: str = "main") -> tuple[float, ...]:
    """The parts of a user's bar of cores: here, elsewhere, free, taken by others."""
    meter = usage_meters(user, group, LIMITS, use)[0]
    assert meter.available is not None
    return meter.mine, meter.elsewhere, meter.available, meter.others


def test_the_parts_of_the_bar_say_who_has_what() -> None:
    assert parts(measure_usage([], NODES)) == (0, 0, 3, 0)
    elsewhere = [job(node="n2", cpus=2, partition="gpu")]
    assert parts(measure_usage(elsewhere, NODES)) == (0, 2, 1, 0)
    both = [job(cpus=1), job("bob", cpus=3), job("bob", "n2", cpus=1)]
    assert parts(measure_usage(both, NODES)) == (1, 0, 1, 1)  # the account may have 6 together
    # In a group of one node, which others fill by way of another group.
    assert parts(measure_usage([job("bob", "n2", cpus=3)], NODES), group="gpu") == (0, 0, 1, 2)
    assert parts(measure_usage([job("alice", "n2", cpus=3)], NODES), group="gpu") == (0, 3, 0, 0)


@given(
    st.lists(
        st.builds(
            job,
            user=st.sampled_from(["alice", "bob", "eve"]),
            node=st.sampled_from(["n1", "n2"]),
            cpus=st.integers(1, 5),
            partition=st.sampled_from(["main", "gpu"]),
        ),
        max_size=6,
    ),
    st.sampled_from(["main", "gpu"]),
)
def test_the_parts_add_up_to_what_is_allowed(jobs: list[JobReport], group: str) -> None:
    for meter in usage_meters("alice", group, LIMITS, measure_usage(jobs, NODES))[:2]:
        assert meter is not None and meter.allowed is not None and meter.available is not None
        assert min(meter.elsewhere, meter.others, meter.available) >= 0
        assert meter.total == max(meter.allowed, meter.mine + meter.available)


def test_what_bounds_a_share_is_said_in_sentences() -> None:
    partitions = [Partition("main", True, True, 4, 8000, 60)]
    found = partition_usage("alice", None, partitions, LIMITS, ClusterUsage())
    assert found is not None
    assert found.notes == (
        "You may use 3 cores and 3 GB at once in all groups together.",
        "Account lab may use 6 cores at once in all groups together.",
        "The largest node in main has 4 cores and 7.81 GB.",
    )
