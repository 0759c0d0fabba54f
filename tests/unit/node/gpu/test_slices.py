"""From Slurm's allocation to a slice, and the folder that holds it."""

from __future__ import annotations

import os
import stat
from fractions import Fraction
from pathlib import Path

import pytest

from portal.node.common.fgpu import MIB, GpuKind
from portal.node.common.gres import Gres
from portal.node.gpu import slices
from portal.node.gpu.nvml import Device
from portal.node.gpu.slices import JobSlice, Part, Refused, decide
from tests.unit.node.gpu.node import A100, CONTEXT, DEMO, MIG, gpu

ME = (os.getuid(), os.getgid())


def shard(count: int, *shares: tuple[int, int], kind: str = "") -> Gres:
    return Gres("shard", kind, count, shares)


def test_the_demos_example() -> None:
    found = decide([shard(1, (1, 4))], [0], [gpu(0)], [DEMO], CONTEXT)
    assert found == JobSlice("limiter", (Part("GPU-0", 2048 * MIB, 25),))
    assert found.text() == ("version=1\ncompute=limiter\ngpu=GPU-0\nmemory=2147483648\nsm=25\n")
    assert slices.parse_slice(found.text()) == found


def test_the_third_gpu_of_a_mixed_node() -> None:
    devices = [gpu(0), gpu(1, 81559, "A100"), gpu(2, 81559, "A100")]
    found = decide([shard(2, (2, 8), kind="a100")], [2], devices, [DEMO, A100], CONTEXT)
    (part,) = found.parts
    # A quarter of what this GPU can give, not of what the settings say.
    assert part == Part("GPU-2", (81559 - 128 - 8 * 64) // 4 * MIB, 25)


def test_shards_of_two_gpus() -> None:
    devices = [gpu(0, 81559), gpu(1, 81559)]
    found = decide([shard(3, (1, 8), (2, 8))], [0, 1], devices, [A100], CONTEXT)
    assert [part.sm_percent for part in found.parts] == [12, 25]


def test_whole_gpus_and_mig_have_no_limit() -> None:
    devices = [gpu(0), gpu(1), Device("MIG-1", "1g.10gb", 9728 * MIB, 2, (), mig=True)]
    found = decide([Gres("gpu", "", 2)], [0, 1], devices, [DEMO], CONTEXT)
    assert found.parts == (Part("GPU-0", 0, 100), Part("GPU-1", 0, 100))
    assert (
        decide([Gres("gpu", "1g.10gb", 1)], [2], devices, [MIG], CONTEXT).parts[0].uuid == "MIG-1"
    )


def test_all_slices_of_a_gpu_and_their_contexts_fit_into_it() -> None:
    """Slices were cut from what NVML calls the total."""
    for memory in (8192, 8191, 7700, 8576, 8800):
        device = gpu(0, memory)
        part = decide([shard(1, (1, 4))], [0], [device], [DEMO], CONTEXT).parts[0]
        assert 4 * (part.memory + CONTEXT) <= device.memory - device.reserved
        assert part.memory >= min(2048, (memory - 128 - 256) // 4) * MIB  # and not less


def test_a_driver_that_does_not_say_what_it_keeps() -> None:
    device = gpu(0, 8192, reserved_mb=0)
    part = decide([shard(1, (1, 4))], [0], [device], [DEMO], CONTEXT).parts[0]
    assert part.memory == (8192 - 256) // 4 * MIB


def test_contexts_take_a_quarter_of_the_gpu_at_most() -> None:
    many = GpuKind("many", "Many", 16384, Fraction(1), Fraction(1, 64))
    assert slices.divisible(gpu(0, 16384, reserved_mb=384), many, 512 * MIB) == 12000 * MIB


def test_settings_may_have_all_of_the_memory_or_what_can_be_divided() -> None:
    device = gpu(0, 24564, reserved_mb=400)
    for memory in (24576, 24564, 20068):
        kind = GpuKind("l4", "L4", memory, Fraction(1), Fraction(1, 8))
        assert slices.is_like(device, kind, 512 * MIB)
    assert not slices.is_like(device, GpuKind("t4", "T4", 16384, Fraction(1), Fraction(1, 8)), 0)
    whole = GpuKind("l4", "L4", 20068, Fraction(1), Fraction(1), sharing="whole")
    assert not slices.is_like(device, whole, 512 * MIB)


@pytest.mark.parametrize(
    ("gres", "numbers", "devices", "kinds", "why"),
    [
        ([], [0], [gpu(0)], [DEMO], "holds no GPU"),
        ([shard(2, (1, 4))], [0], [gpu(0)], [DEMO], "do not fit"),
        ([shard(2, (2, 4))], [0, 1], [gpu(0), gpu(1)], [DEMO], "do not fit"),
        ([shard(2)], [0], [gpu(0)], [DEMO], "do not fit"),
        ([shard(1, (1, 4))], [1], [gpu(0)], [DEMO], "shows 1 only"),
        ([shard(1, (1, 8))], [0], [gpu(0)], [DEMO], "no kind"),
        ([shard(1, (1, 4))], [0], [gpu(0, 16384)], [DEMO], "no kind"),
        ([shard(1, (1, 4), kind="h100")], [0], [gpu(0)], [DEMO], "no kind"),
        ([shard(1, (1, 4))], [0], [gpu(0)], [], "no kind"),
        ([shard(1, (1, 4)), Gres("gpu", "", 1)], [0], [gpu(0)], [DEMO], "shard, gpu"),
        ([Gres("gpu", "", 2)], [0], [gpu(0)], [DEMO], "named 1"),
    ],
)
def test_allocations_that_cannot_be_enforced_are_refused(
    gres: list[Gres],
    numbers: list[int],
    devices: list[Device],
    kinds: list[GpuKind],
    why: str,
) -> None:
    with pytest.raises(Refused, match=why):
        decide(gres, numbers, devices, kinds, CONTEXT)


def _mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_root_owns_the_folder_and_the_user_the_counters(
    tmp_path: Path, mounted: list[tuple[str, int]]
) -> None:
    jobs = tmp_path / "jobs"
    slices.write(jobs, 12, ME, {"slice": "version=1\n"})
    folder = jobs / "12"
    assert sorted(path.name for path in folder.iterdir()) == ["counters", "driver", "room", "slice"]
    assert mounted == [("room", 1 << 20)]
    assert (_mode(folder), _mode(folder / "slice")) == (0o755, 0o644)
    assert _mode(folder / "room") == 0o755
    counters = folder / "counters"
    assert (_mode(counters), counters.stat().st_size) == (0o600, 1 << 20)
    assert counters.read_bytes().count(0) == 1 << 20
    assert counters.stat().st_blocks * 512 >= 1 << 20  # every page of it is allocated
    assert list(slices.all_jobs(jobs)) == [12]


def test_a_requeued_job_starts_with_an_empty_folder(tmp_path: Path) -> None:
    slices.write(tmp_path, 12, ME, {"slice": "old", "limits": "GPU-0 2048\n"})
    (tmp_path / "12" / "counters").write_bytes(b"full")
    slices.write(tmp_path, 12, ME, {"slice": "new"})
    assert (tmp_path / "12" / "slice").read_text() == "new"
    assert (tmp_path / "12" / "counters").stat().st_size == 1 << 20
    assert not (tmp_path / "12" / "limits").exists()


@pytest.mark.parametrize("half", [".new-12", ".old-12"])
def test_leftovers_of_a_crash_are_replaced(tmp_path: Path, half: str) -> None:
    (tmp_path / half / "driver").mkdir(parents=True)
    assert list(slices.all_jobs(tmp_path)) == []
    slices.write(tmp_path, 12, ME, {"slice": "whole"})
    slices.remove(tmp_path, 12)
    slices.remove(tmp_path, 12)
    assert list(tmp_path.iterdir()) == []
