"""Real calls of NVML: a library built for the test, with its own structures."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.common.fgpu import MIB
from portal.node.gpu import nvml
from portal.node.gpu.nvml import Nvml, NvmlError


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from fake_nvml.c."""
    out = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    source = Path(__file__).parent / "fake_nvml.c"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", str(out), str(source)], check=True)
    return out


@pytest.fixture
def driver(library: Path) -> Iterator[Nvml]:
    """An open connection."""
    found = Nvml(str(library))
    yield found
    found.close()


def test_devices_in_the_order_of_their_files(
    driver: Nvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minors = tmp_path / "mig-minors"
    minors.write_text("gpu0/gi7/access 66\ngpu0/gi7/ci0/access 67\ngpu0/gi8/access 75\n")
    monkeypatch.setattr(nvml, "MIG_MINORS", minors)
    first, second, third = driver.devices()
    assert (first.uuid, first.mig, first.files[1:]) == (
        "MIG-1",
        True,
        ("/dev/nvidia-caps/nvidia-cap66", "/dev/nvidia-caps/nvidia-cap67"),
    )
    assert (second.uuid, second.memory, second.minor) == ("MIG-2", 9728 * MIB, 0)
    assert (third.uuid, third.files, third.mig) == ("GPU-a", ("/dev/nvidia1",), False)
    assert (third.name, third.memory, third.reserved) == ("First", 8192 * MIB, 300 * MIB)
    assert second.reserved == 0


def test_processes_of_all_kinds_and_more_than_expected(driver: Nvml) -> None:
    found = driver.processes("GPU-a")
    assert len(found) == 70
    assert found[1000] == 5 * MIB  # it computes and draws: the larger figure includes both
    assert found[1001] == 2 * MIB
    assert found[1069] == 0  # unknown
    assert driver.processes("GPU-b") == {}


def test_shares_of_time_since_the_last_poll(driver: Nvml) -> None:
    assert driver.busy("GPU-a", 80) == {1000: 25.0, 1001: 7.0}
    assert driver.busy("GPU-a", 101) == {}
    assert driver.busy("GPU-b", 80) is None


def test_memory_in_use_with_what_no_process_has(driver: Nvml) -> None:
    assert driver.used("GPU-a") == 2048 * MIB
    assert driver.used("GPU-b") is None


def test_the_state_of_a_gpu(driver: Nvml) -> None:
    assert driver.persistence("GPU-a") is True
    assert driver.persistence("GPU-b") is None
    assert [driver.compute_mode(gpu) for gpu in ("GPU-a", "GPU-b")] == [3, 0]
    assert driver.fabric("GPU-a") == (3, 6)
    assert driver.fabric("GPU-b") is None


def test_versions_and_errors(driver: Nvml, tmp_path: Path) -> None:
    assert driver.driver() == (615, 43, 2)
    with pytest.raises(NvmlError, match="nvmlDeviceGetHandleByUUID: 6"):
        driver.processes("GPU-c")
    with pytest.raises(NvmlError, match="cannot be loaded"):
        Nvml(str(tmp_path / "libnvidia-ml.so.1"))


def test_the_library_is_unloaded(library: Path) -> None:
    mapped = Path("/proc/self/maps")
    Nvml(str(library)).close()
    assert str(library) not in mapped.read_text()
