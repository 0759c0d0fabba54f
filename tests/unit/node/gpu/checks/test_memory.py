"""The check of whether all slices of a GPU can be full at the same time."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from portal.node.common.fgpu import MIB, GpuKind
from portal.node.gpu.checks.memory import check_memory
from tests.unit.node.gpu.node import DEMO, MIG, gpu

H200 = GpuKind("h200", "H200", 143_771, Fraction(1, 4), Fraction(1))


def test_what_can_be_given_and_what_to_set() -> None:
    """An H200's total of NVML was cut into slices that do not fit."""
    device = gpu(0, 143_771, reserved_mb=600)
    (_, ok), (mark, note) = check_memory("GPU 0", device, H200, 512 * MIB)
    assert "141123 MiB can be divided into slices (600 MiB are the driver's, 2048 MiB" in ok
    assert mark == "note"
    assert 'Set memory = "141123m" for this kind' in note
    fits = replace(H200, memory_mb=141_123)
    assert [mark for mark, _ in check_memory("GPU 0", device, fits, 512 * MIB)] == ["ok"]


def test_too_many_sessions() -> None:
    many = GpuKind("t4", "T4", 8192, Fraction(1), Fraction(1, 64))
    findings = list(check_memory("GPU 0", gpu(0, 16384), many, 512 * MIB))
    assert findings[1][0] == "note"
    assert "choose a larger `step`" in findings[1][1]


def test_whole_gpus_and_mig_devices_are_not_divided() -> None:
    assert list(check_memory("GPU 0", gpu(0), MIG, 0)) == []
    assert list(check_memory("GPU 0", gpu(0), replace(DEMO, sharing="whole"), 0)) == []
