"""NVIDIA's Python bindings of NVML (nvidia-ml-py), of which monitoring is made, in a session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.gres.conftest import MIB, Shim
from tests.unit.gres.nvml.sessions import NAMESPACE, note_load
from tests.unit.gres.packages import fetched
from tests.unit.gres.programs import CONTEXT


@pytest.mark.parametrize("driver", ["535", "550", "580"])
def test_the_slice_and_the_session_are_shown(session: Shim, driver: str) -> None:
    note_load(session, 200, 100 * MIB + CONTEXT)
    client = str(Path(__file__).parent / "ml_client.py")
    done = subprocess.run(
        [*NAMESPACE, sys.executable, client, str(session.cuda)],
        capture_output=True,
        text=True,
        check=False,
        env={
            "LD_LIBRARY_PATH": str(session.libraries),
            "PYTHONPATH": str(fetched("nvidia-ml-py==13.*")),
            "STANDIN_DRIVER": driver,
        },
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "count": 1,
        "memory": [2048, 164, 2048, 164],
        "processes": [[True, 164]],
        "utilisation": 80,
        "by process": [[True, 80]],
        "samples": [1, [80]],
        "accounting": [0, "Not Supported", "Not Supported"],
    }
