"""This machine's GPU and its driver, as programs without the shim see them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from portal.node.common.fgpu import CONTEXT_MB, GpuKind, share_of
from portal.node.gpu import slices
from portal.node.gpu.nvml import Device, Nvml, NvmlError

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
WORK = Path(os.environ.get("SLIPWAY_GPU_WORK", ROOT / "build" / "gpu")).resolve()
OUT = Path(os.environ.get("OUT") or WORK).resolve()
"""The folder for the figures, a file of JSON for each step."""
LOGS = WORK / "logs"
PYTHON = os.environ.get("PYTHON", sys.executable)
"""The Python that has the frameworks."""
MIB = 1 << 20
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
FOLDERS = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib")
"""Where the driver is on machines whose ldconfig does not know it."""
PROGRAM_FOLDERS = ("/usr/local/nvidia/bin", "/usr/bin", "/usr/lib/wsl/lib")
ASKING = 30
"""Seconds for nvidia-smi."""


@dataclass(frozen=True)
class Driver:
    """The libraries behind the shim. A folder named by SLIPWAY_GPU_DRIVER is searched first, to
    test this suite itself without a GPU.
    """

    libraries: dict[str, Path]
    smi: str
    standin: Path | None = None
    needed: tuple[str, ...] = ()
    """Folders that must be in LD_LIBRARY_PATH, since nothing else leads there."""

    @classmethod
    def find(cls) -> Driver:
        """Those that programs on this machine would load. Raises FileNotFoundError."""
        if named := os.environ.get("SLIPWAY_GPU_DRIVER"):
            folder = Path(named)
            return cls({name: folder / name for name in LIBRARIES}, f"{named}/nvidia-smi", folder)
        found: dict[str, Path] = {}
        needed: list[str] = []
        for path in _candidates():
            if path.exists() and path.name not in found:
                found[path.name] = path.resolve()
                needed += [str(path.parent)] if str(path.parent) in FOLDERS else []
        if missing := set(LIBRARIES) - set(found):
            raise FileNotFoundError(
                f"{', '.join(sorted(missing))}: not in LD_LIBRARY_PATH, not known to ldconfig, "
                f"not in {', '.join(FOLDERS)}"
            )
        smi = shutil.which("nvidia-smi") or shutil.which(
            "nvidia-smi", path=os.pathsep.join(PROGRAM_FOLDERS)
        )
        if not smi:
            raise FileNotFoundError(f"nvidia-smi: not in PATH, not in {', '.join(PROGRAM_FOLDERS)}")
        return cls(found, smi, needed=tuple(dict.fromkeys(needed)))

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which programs find this driver. No folder is named that need not be: it
        would come before the libraries that programs bring along.
        """
        first = [str(self.standin)] if self.standin else []
        return {"LD_LIBRARY_PATH": ":".join([*first, *_known_folders(), *self.needed])}


def _known_folders() -> list[str]:
    """Those that the user has named, without stubs, which are for linking only."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return [folder for folder in folders if folder and Path(folder).name != "stubs"]


def _candidates() -> Iterator[Path]:
    """In the order in which the dynamic linker looks."""
    for folder in _known_folders():
        yield from (Path(folder) / name for name in LIBRARIES)
    yield from _known_to_ldconfig()
    for folder in FOLDERS:
        yield from (Path(folder) / name for name in LIBRARIES)


def _known_to_ldconfig() -> Iterator[Path]:
    program = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if not program:
        return
    done = subprocess.run([program, "-p"], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        name, _, kind = line.strip().partition(" ")
        if name in LIBRARIES and ("x86-64" in kind or "AArch64" in kind):
            yield Path(kind.split(" => ")[1])


@dataclass(frozen=True)
class Gpu:
    """The first GPU of this machine, as its own driver sees it."""

    driver: Driver
    name: str
    uuid: str
    memory: int
    """Bytes, of NVML."""
    version: str
    """The driver's version."""
    reserved: int = 0
    """Bytes of it that the driver keeps."""

    @classmethod
    def find(cls) -> Gpu:
        """Raises FileNotFoundError without a GPU."""
        driver = Driver.find()
        fields = ask_smi(driver, "name,uuid,memory.total,driver_version")
        if len(fields) != 4:
            raise FileNotFoundError("nvidia-smi shows no GPU")
        name, uuid, memory, version = fields
        gpu = cls(driver, name, uuid, int(memory) * MIB, version)
        return replace(gpu, reserved=gpu._device().reserved)

    def part(self, share: float) -> int:
        """Bytes of a slice that is this share of the GPU, as Prolog cuts it, in whole MiB."""
        step = Fraction(share).limit_denominator(100)
        kind = GpuKind("", "", self.memory // MIB, unit=Fraction(1), step=step)
        device = Device(self.uuid, self.name, self.memory, 0, (), reserved=self.reserved)
        whole = slices.divisible(device, kind, CONTEXT_MB * MIB)
        return share_of(whole, step.numerator, step.denominator)

    @property
    def real(self) -> bool:
        """Whether durations mean anything here."""
        return self.driver.standin is None

    def used(self) -> int:
        """Bytes in use by all processes, measured without the shim."""
        return int(ask_smi(self.driver, "memory.used")[0]) * MIB

    def connect(self) -> Nvml:
        """NVML of the real driver, as root's watchdog opens it."""
        return Nvml(str(self.driver.libraries["libnvidia-ml.so.1"]))

    def processes(self) -> dict[int, int]:
        """Bytes by PID, as root's watchdog sees them. Raises NvmlError."""
        nvml = self.connect()
        try:
            return nvml.processes(self.uuid)
        finally:
            nvml.close()

    def _device(self) -> Device:
        try:
            nvml = self.connect()
            try:
                return next(one for one in nvml.devices() if one.uuid == self.uuid)
            finally:
                nvml.close()
        except (NvmlError, StopIteration) as error:
            raise FileNotFoundError(f"NVML does not show {self.uuid}: {error}") from error


def ask_smi(driver: Driver, fields: str, **environment: str) -> list[str]:
    """nvidia-smi's output for the first GPU. Raises FileNotFoundError."""
    command = [driver.smi, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    settings = os.environ | driver.environment | environment
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=settings, timeout=ASKING
        )
    except subprocess.TimeoutExpired as error:
        raise FileNotFoundError(f"nvidia-smi gave no answer in {ASKING} s") from error
    if done.returncode or not done.stdout.strip():
        raise FileNotFoundError(f"nvidia-smi: {done.stdout}{done.stderr}")
    return [field.strip() for field in done.stdout.splitlines()[0].split(",")]
