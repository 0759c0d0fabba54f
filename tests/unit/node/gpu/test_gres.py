"""Slurm's configuration for a node's GPUs."""

from __future__ import annotations

from fractions import Fraction

from portal.node.common.fgpu import MIB, GpuKind
from portal.node.gpu import gres
from portal.node.gpu.nvml import Device, mig_files
from tests.unit.node.gpu.node import A100, CONTEXT, MIG, gpu


def test_lines_of_a_mixed_node() -> None:
    devices = [
        gpu(0, 81559, "NVIDIA A100-SXM4-80GB"),
        gpu(1, 81559, "NVIDIA A100-SXM4-80GB"),
        Device(
            "MIG-7",
            "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
            9728 * MIB,
            2,
            ("/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap66", "/dev/nvidia-caps/nvidia-cap67"),
            mig=True,
        ),
        gpu(3, 16384, "Tesla P100"),
    ]
    lines = list(gres.gres_conf("n7", devices, (A100, MIG), CONTEXT))
    assert [line for line in lines if not line.startswith("#")] == [
        "NodeName=n7 Name=gpu Type=a100 File=/dev/nvidia0",
        "NodeName=n7 Name=gpu Type=a100 File=/dev/nvidia1",
        "NodeName=n7 Name=gpu Type=1g.10gb MultipleFiles=/dev/nvidia2,"
        "/dev/nvidia-caps/nvidia-cap66,/dev/nvidia-caps/nvidia-cap67",
        "NodeName=n7 Name=gpu File=/dev/nvidia3",
        "NodeName=n7 Name=shard Count=8 File=/dev/nvidia0",
        "NodeName=n7 Name=shard Count=8 File=/dev/nvidia1",
    ]
    assert lines[-1].endswith("Gres=gpu:a100:2,shard:16,gpu:1g.10gb:1,gpu:1")
    assert "# Tesla P100, 16384 MiB: no kind in the settings; whole only" in lines


def test_kinds_of_one_size_are_distinguished_by_name() -> None:
    h100 = GpuKind("h100", "H100", 81920, Fraction(1, 4), Fraction(1, 2))
    assert gres.find_kind(gpu(0, 81559, "NVIDIA H100 PCIe"), (A100, h100), CONTEXT) == h100
    assert gres.find_kind(gpu(0, 81559, "NVIDIA A800"), (A100, h100), CONTEXT) is None


def test_files_of_a_mig_device() -> None:
    minors = "config 1\nmonitor 2\ngpu2/gi7/access 66\ngpu2/gi7/ci0/access 67\n"
    assert mig_files(minors, 2, 7, 0) == (
        "/dev/nvidia-caps/nvidia-cap66",
        "/dev/nvidia-caps/nvidia-cap67",
    )
