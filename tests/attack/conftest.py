"""Attacks on the running system: each test is one that gained something once, or must never."""

from __future__ import annotations

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
    "cluster",
    "make_api",
    "pytest_runtest_makereport",
    "researcher",
    "session",
    "tokens",
]
