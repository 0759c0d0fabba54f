"""Attacks on the running system: each test is one that gained something once, or must never."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.conftest import browser, cookies, log_in
from tests.client import Browser
from tests.cluster import Cluster
from tests.slurm.conftest import (
    admin,
    alice,
    bob,
    cluster,
    make_api,
    pytest_runtest_makereport,
    researcher,
    session,
    tokens,
)

__all__ = [
    "admin",
    "alice",
    "bob",
    "browser",
    "cluster",
    "cookies",
    "log_in",
    "make_api",
    "pytest_runtest_makereport",
    "researcher",
    "session",
    "tokens",
]

LoggedIn = Callable[[str], Browser]


@pytest.fixture(scope="session")
def logged_in(cluster: Cluster) -> LoggedIn:
    """Somebody's cookies at the portal; one login each, as their number is limited."""
    known: dict[str, Browser] = {}

    def give(user: str) -> Browser:
        if user not in known:
            known[user] = Browser(cluster, user)
        return known[user]

    return give
