"""Attacks on the running system: each test succeeded once as an attack, or must never succeed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.conftest import browser, cookies, log_in
from tests.slurm.conftest import (
    admin,
    alice,
    bob,
    clean_accounts,
    cluster,
    hub_logins,
    make_api,
    make_hub,
    pytest_runtest_makereport,
    researcher,
    session,
    tokens,
)
from tests.support.client import Browser
from tests.support.cluster import Cluster

__all__ = [
    "admin",
    "alice",
    "bob",
    "browser",
    "clean_accounts",
    "cluster",
    "cookies",
    "hub_logins",
    "log_in",
    "make_api",
    "make_hub",
    "pytest_runtest_makereport",
    "researcher",
    "session",
    "tokens",
]

LoggedIn = Callable[[str], Browser]


@pytest.fixture(scope="session")
def logged_in(cluster: Cluster) -> LoggedIn:
    """Each user's login cookies at the portal; one login each, since logins are limited."""
    known: dict[str, Browser] = {}

    def give(user: str) -> Browser:
        if user not in known:
            known[user] = Browser(cluster, user)
        return known[user]

    return give
