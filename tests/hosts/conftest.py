"""The running cluster, which has two portal hosts."""

from __future__ import annotations

from tests.slurm.conftest import cluster

__all__ = ["cluster"]
