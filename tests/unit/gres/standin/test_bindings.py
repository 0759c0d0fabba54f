"""NVIDIA's Python bindings of the driver API, of two major versions, with and without the shim.

They look up each function in the version that they were made for, as programs of that version do.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.gres.conftest import MIB, UUID, Shim, Standin
from tests.unit.gres.packages import fetched

PACKAGES = {
    "12": ("cuda-bindings==12.9.*", "cuda-pathfinder==1.*"),
    "13": ("cuda-bindings==13.*", "cuda-pathfinder==1.*"),
}
STEPS = """plain 64
ordered 96
kept by the pool 96
freed 0
refused 0
mapped 16
unmapped 0
kernels True
captured 0
launched 8
trimmed 0
green 0
"""


@pytest.mark.parametrize("version", PACKAGES)
@pytest.mark.parametrize("shimmed", [False, True], ids=["driver", "shim"])
def test_each_step(
    standin: Standin, shim: Callable[..., Shim], version: str, shimmed: bool
) -> None:
    session = shim()
    session.grant((UUID.format(0), 2048 * MIB, 25))
    package = fetched(*PACKAGES[version])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "bindings_client.py")],
        capture_output=True,
        text=True,
        check=False,
        env={
            "LD_LIBRARY_PATH": str((session if shimmed else standin).cuda.parent),
            "PYTHONPATH": str(package),
            "SLIPWAY_GPU_TRACE": "1",
        },
    )
    assert done.returncode == 0, done.stderr
    total, _, steps = done.stdout.partition("\n")
    assert total == ("total 2048 2048" if shimmed else "total 8192 8192")
    assert steps == STEPS
    assert standin.show()["gpus"][0]["busy_ns"] == 40_000_000
