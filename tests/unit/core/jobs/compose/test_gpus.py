"""GPUs that a job asks for, compared with those that nodes were reported with."""

from __future__ import annotations

from typing import Any

import pytest

from portal.core.cluster.inventory import NodeGpus, Partition
from portal.core.jobs.compose.gpus import asks_for_known_gpus
from portal.core.jobs.compose.submission import parse_job

PARTITIONS = [
    Partition("main", True, True, 8, 8192, 600),
    Partition("gpu", False, True, 8, 8192, 600, gpus=(NodeGpus("a100", 2, 8), NodeGpus("t4", 1))),
]


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ({}, False),
        ({"resources": {"fgpu": 0.5}}, True),
        ({"resources": {"fgpu": 0.5, "gpu_kind": "t4"}}, True),
        ({"resources": {"fgpu": 0.5, "gpu_kind": "h100"}}, False),
        ({"resources": {"fgpu": 0.5}, "resource_group": "gpu"}, True),
        ({"resources": {"fgpu": 0.5}, "resource_group": "main"}, False),
        ({"options": ["--gres=gpu:a100:2"]}, True),
        ({"options": ["--gres=gpu:a100:3"]}, False),
        ({"options": ["--gres", "gres/gpu:1"]}, True),
        ({"options": ["--gres=shard:8"]}, True),
        ({"options": ["--gres=shard:t4:1"]}, False),
        ({"options": ["--gres=gpu:1,fpga:1"]}, False),
        ({"options": ["--gres=gpu:a:b:1"]}, False),
        ({"options": ["--gpus=t4:1"]}, True),
        ({"options": ["-G2"]}, True),
        ({"options": ["--gpus-per-task=9"]}, False),
        ({"options": ["--gpus-per-node=1", "--gres=tpu"]}, False),
        ({"script": "#!/bin/sh\n#SBATCH --gres=gpu:1\n"}, True),
        ({"script": "#!/bin/sh\n#SBATCH --gres=tpu:1\n"}, False),
        # sbatch divides scripts at newlines alone.
        ({"script": "#!/bin/sh\n# a\x0b#SBATCH --gres=gpu:1\n"}, False),
        ({"script": "#!/bin/sh\n# a\u2028#SBATCH --gres=gpu:1\n"}, False),
        ({"script": "#!/bin/sh\n#SLIPWAY --image=python --fgpu=0.5\n"}, True),
        ({"script": "#!/bin/sh\necho --gres=gpu:1\n"}, False),
    ],
)
def test_known_gpus(asked: dict[str, Any], known: bool) -> None:
    request = parse_job({"script": "#!/bin/sh\n"} | asked)
    assert asks_for_known_gpus(request, request.script or "", PARTITIONS) is known
