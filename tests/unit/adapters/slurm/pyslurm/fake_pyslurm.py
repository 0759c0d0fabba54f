"""A module in the place of pyslurm, replaying pyslurm 24.11 (tests/record_pyslurm.py)."""

from __future__ import annotations

import json
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.support.paths import RECORDED

RECORD: dict[str, Any] = json.loads((RECORDED / "24.11" / "pyslurm.json").read_text())


class RPCError(Exception):
    """What pyslurm raises when slurmctld does not answer."""


def replaying(down: str = "") -> ModuleType:
    """pyslurm with the recorded queue, or with a slurmctld that does not answer."""
    module = ModuleType("pyslurm")

    class Jobs(dict[int, SimpleNamespace]):
        @staticmethod
        def load() -> Jobs:
            if down:
                raise RPCError(down)
            return Jobs({job["id"]: SimpleNamespace(**job) for job in RECORD["jobs"]})

    class OldJobs:
        def get(self) -> dict[int, dict[str, str | None]]:
            return {int(id): tres for id, tres in RECORD["allocated"].items()}

    vars(module).update(__version__=RECORD["version"], Jobs=Jobs, job=OldJobs, RPCError=RPCError)
    return module
