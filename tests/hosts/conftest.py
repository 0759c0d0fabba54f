"""The running cluster, which has two portal hosts."""

from __future__ import annotations

import pytest

from tests.slurm.conftest import cluster
from tests.support.client import Api, login
from tests.support.cluster import Cluster

__all__ = ["cluster"]


@pytest.fixture(scope="session")
def clusters(cluster: Cluster) -> list[Cluster]:
    """The cluster as its first portal host shows it, and as the second."""
    second = Cluster(cluster.project, cluster.port)
    second.__dict__["url"] = second.run("portal2", "printenv", "SLIPWAY_PUBLIC_URL").strip()
    return [cluster, second]


@pytest.fixture(scope="session")
def both(clusters: list[Cluster]) -> list[Api]:
    """Alice's API clients of the two hosts."""
    token = login(clusters[0], "alice")
    return [Api(each, "alice", token) for each in clusters]
