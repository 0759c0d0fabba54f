"""The check of the driver's state, with files and figures of several machines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from portal.node.common.fgpu import GpuKind
from portal.node.gpu.checks import Finding
from portal.node.gpu.checks.driver import KernelPaths, check_gpu, check_node
from portal.node.gpu.nvml import Device, Nvml
from tests.unit.node.gpu.node import DEMO, MIG, gpu

MPS = replace(DEMO, compute="mps")


class State:
    """What NVML says of one GPU."""

    def __init__(
        self,
        persistence: bool | None = True,
        mode: int | None = 0,
        fabric: tuple[int, int] | None = None,
    ) -> None:
        self.persistence = lambda uuid: persistence
        self.compute_mode = lambda uuid: mode
        self.fabric = lambda uuid: fabric


def _of(state: State, kind: GpuKind | None = DEMO, device: Device | None = None) -> list[Finding]:
    return list(check_gpu(cast(Nvml, state), "GPU 0", device or gpu(0), kind))


def test_a_good_gpu_has_no_findings() -> None:
    for state in (State(), State(None, None), State(fabric=(3, 0))):
        assert _of(state) == []
    assert _of(State(mode=3), MPS) == []
    assert _of(State(mode=3), kind=None) == []  # a GPU that is not Slipway's


@pytest.mark.parametrize(
    ("state", "kind", "mark", "words"),
    [
        (State(persistence=False), DEMO, "note", "nvidia-persistenced"),
        (State(mode=2), None, "wrong", "nvidia-smi -c DEFAULT"),
        (State(mode=3), DEMO, "wrong", "nvidia-smi -c DEFAULT"),
        (State(mode=0), MPS, "wrong", "nvidia-smi -c EXCLUSIVE_PROCESS"),
        (State(fabric=(1, 0)), DEMO, "wrong", "error 802: start nvidia-fabricmanager"),
        (State(fabric=(2, 0)), DEMO, "wrong", "error 802: start nvidia-fabricmanager"),
        (State(fabric=(3, 6)), DEMO, "wrong", "NVML's error 6"),
    ],
)
def test_each_finding_says_what_to_do(
    state: State, kind: GpuKind | None, mark: str, words: str
) -> None:
    ((found, text),) = _of(state, kind)
    assert found == mark
    assert words in text


def test_a_mig_device_without_capabilities() -> None:
    part = Device("MIG-1", "1g.10gb", 1 << 33, 0, ("/dev/nvidia0",), mig=True)
    ((mark, text),) = _of(State(persistence=False), MIG, part)
    assert mark == "wrong"
    assert "mig-minors" in text
    caps = ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap66", "/dev/nvidia-caps/nvidia-cap67")
    assert _of(State(), MIG, replace(part, files=caps)) == []


@pytest.fixture
def places(tmp_path: Path) -> KernelPaths:
    """A machine with all device files."""
    found = KernelPaths(tmp_path / "dev", tmp_path / "proc", tmp_path / "module")
    for folder in (found.dev, found.proc, found.modules):
        folder.mkdir()
    for name in ("nvidia0", "nvidia-uvm", "nvidia-uvm-tools"):
        (found.dev / name).touch()
    return found


def _wrong(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding[0] != "ok"]


def test_missing_device_files(places: KernelPaths) -> None:
    assert _wrong(check_node([gpu(0)], places)) == []
    caps = ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap66")
    (found,) = _wrong(check_node([replace(gpu(0), files=caps)], places))
    assert "/dev/nvidia-caps/nvidia-cap66 is missing" in found[1]
    (places.dev / "nvidia-uvm-tools").unlink()
    (found,) = _wrong(check_node([gpu(0)], places))
    assert found[0] == "note"
    (places.dev / "nvidia-uvm").unlink()
    (found,) = _wrong(check_node([gpu(0)], places))
    assert found[0] == "wrong"
    assert "nvidia-modprobe -u -c 0" in found[1]


def test_memory_of_the_heap_on_the_gpu(places: KernelPaths) -> None:
    parameter = places.modules / "nvidia_uvm" / "parameters" / "uvm_disable_hmm"
    parameter.parent.mkdir(parents=True)
    parameter.write_text("Y\n")
    assert _wrong(check_node([gpu(0)], places)) == []
    parameter.write_text("N\n")
    (found,) = _wrong(check_node([gpu(0)], places))
    assert "uvm_disable_hmm=1" in found[1]


def test_a_machine_with_switches_needs_the_fabric_manager(places: KernelPaths) -> None:
    (places.dev / "nvidia-nvswitchctl").touch()
    assert _wrong(check_node([gpu(0)], places)) == []
    (places.dev / "nvidia-nvswitch0").touch()
    (found,) = _wrong(check_node([gpu(0)], places))
    assert "start nvidia-fabricmanager.service" in found[1]
    (places.proc / "77").mkdir()
    (places.proc / "77" / "comm").write_text("nv-fabricmanage\n")
    assert _wrong(check_node([gpu(0)], places)) == []
