"""The node's GPUs through NVIDIA's management library (NVML); structures as in nvml.h."""

from __future__ import annotations

import _ctypes
import ctypes
import re
from dataclasses import dataclass
from pathlib import Path

from portal.node.gpu import untrusted

LIBRARY = "libnvidia-ml.so.1"
MIG_MINORS = Path("/proc/driver/nvidia-caps/mig-minors")

NOT_SUPPORTED = 3
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
FUNCTION_NOT_FOUND = 13
NOT_AVAILABLE = (1 << 64) - 1
"""NVML's value for the memory of a process if it is unknown."""


class NvmlError(Exception):
    """NVML returned an error, or is not installed."""

    def __init__(self, text: str, code: int = -1) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Device:
    """One GPU, or one MIG device, that Slurm can allocate."""

    uuid: str
    name: str
    memory: int
    """Bytes."""
    minor: int
    """Number of its device file: /dev/nvidia<minor>."""
    files: tuple[str, ...]
    mig: bool = False
    reserved: int = 0
    """Bytes of the memory that the driver reserves for itself; 0 if unknown."""


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Memory2(ctypes.Structure):
    """nvmlMemory_v2_t, since r510, which has the driver's reserve."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _Sample(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("time", ctypes.c_ulonglong),
        ("sm", ctypes.c_uint),
        ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint),
        ("decoder", ctypes.c_uint),
    )


class _Fabric(ctypes.Structure):
    _fields_ = (
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_int),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
    )


class Nvml:
    """An open connection to the driver; while it is open, the driver cannot be unloaded."""

    def __init__(self, library: str = LIBRARY) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise NvmlError(f"{library} cannot be loaded: {error}") from error
        self._handles: dict[str, ctypes.c_void_p] = {}
        self._call("nvmlInit_v2")

    def close(self) -> None:
        """Release the driver and unload the library, which an update may replace."""
        try:
            self._call("nvmlShutdown")
        except NvmlError:
            pass  # the driver is gone already
        finally:
            _ctypes.dlclose(self._library._handle)

    def driver(self) -> tuple[int, ...]:
        """The driver's version, as (615, 43)."""
        text = ctypes.create_string_buffer(96)
        self._call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(len(text)))
        return tuple(int(number) for number in re.findall(r"\d+", untrusted.decode(text.value)))

    def devices(self) -> list[Device]:
        """List all devices in the order of their device files; MIG devices replace their GPU.

        `slipway-gpu gres` prints its lines in the same order, which thereby defines Slurm's
        numbers (SLURM_JOB_GPUS): Slurm counts the lines of gres.conf.
        """
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        devices: list[Device] = []
        for index in range(count.value):
            handle = ctypes.c_void_p()
            self._call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
            devices += self._mig_devices(handle) or [self._device(handle)]
        return sorted(devices, key=lambda device: device.minor)

    def processes(self, uuid: str) -> dict[int, int]:
        """Bytes of memory that each process holds on a GPU, by PID."""
        by_pid: dict[int, int] = {}
        for kind in ("Compute", "Graphics", "MPSCompute"):
            for pid, memory in self._processes(uuid, kind):
                by_pid[pid] = max(by_pid.get(pid, 0), memory)
        return by_pid

    def used(self, uuid: str) -> int | None:
        """Bytes in use on a GPU, without the driver's reserve; None from drivers before r510.

        Includes managed memory, which NVML attributes to no process.
        """
        memory = self._memory(self._handle(uuid))
        return None if memory is None else int(memory.used)

    def busy(self, uuid: str, since: int) -> dict[int, float] | None:
        """Utilisation of a GPU's multiprocessors by PID since a time (microseconds), in percent.

        None if this GPU does not support it.
        """
        count = ctypes.c_uint()
        name = "nvmlDeviceGetProcessUtilization"
        code = self._try(name, self._handle(uuid), None, ctypes.byref(count), _since(since))
        samples = (_Sample * max(count.value, 1))()
        if code == INSUFFICIENT_SIZE:
            code = self._try(name, self._handle(uuid), samples, ctypes.byref(count), _since(since))
        if code in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
            return None
        if code not in (0, NOT_FOUND, INSUFFICIENT_SIZE):
            raise NvmlError(f"{name}: {code}", code)
        by_pid: dict[int, list[int]] = {}
        for sample in samples[: count.value] if code == 0 else ():
            by_pid.setdefault(sample.pid, []).append(sample.sm)
        return {pid: sum(percents) / len(percents) for pid, percents in by_pid.items()}

    def persistence(self, uuid: str) -> bool | None:
        """Whether the GPU stays initialised without programs; None if the driver does not say."""
        mode = self._figure("nvmlDeviceGetPersistenceMode", uuid)
        return None if mode is None else mode != 0

    def compute_mode(self, uuid: str) -> int | None:
        """Which programs may use the GPU, as NVML's number; None if the driver does not say."""
        return self._figure("nvmlDeviceGetComputeMode", uuid)

    def fabric(self, uuid: str) -> tuple[int, int] | None:
        """State and status of the registration with the fabric manager; None without NVSwitch."""
        info = _Fabric()
        name = "nvmlDeviceGetGpuFabricInfo"
        if self._try(name, self._handle(uuid), ctypes.byref(info)) or not info.state:
            return None
        return int(info.state), int(info.status)

    def _figure(self, name: str, uuid: str) -> int | None:
        number = ctypes.c_uint()
        failed = self._try(name, self._handle(uuid), ctypes.byref(number))
        return None if failed else number.value

    def _processes(self, uuid: str, kind: str) -> list[tuple[int, int]]:
        """Query the processes of one kind; retries with a larger buffer if it was too small."""
        name = f"nvmlDeviceGet{kind}RunningProcesses_v3"
        capacity = 64
        while True:
            count = ctypes.c_uint(capacity)
            entries = (_Process * capacity)()
            code = self._try(name, self._handle(uuid), ctypes.byref(count), entries)
            if code != INSUFFICIENT_SIZE:
                break
            capacity = 2 * max(capacity, count.value)
        if code in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
            return []
        if code:
            raise NvmlError(f"{name}: {code}", code)
        return [
            (entry.pid, 0 if entry.memory == NOT_AVAILABLE else entry.memory)
            for entry in entries[: count.value]
        ]

    def _device(self, handle: ctypes.c_void_p) -> Device:
        minor = self._number("nvmlDeviceGetMinorNumber", handle)
        memory = self._memory(handle)
        return Device(
            uuid=self._text("nvmlDeviceGetUUID", handle),
            name=self._text("nvmlDeviceGetName", handle),
            memory=self._total(handle),
            minor=minor,
            files=(f"/dev/nvidia{minor}",),
            reserved=0 if memory is None else int(memory.reserved),
        )

    def _mig_devices(self, gpu: ctypes.c_void_p) -> list[Device]:
        now, later = ctypes.c_uint(), ctypes.c_uint()
        if self._try("nvmlDeviceGetMigMode", gpu, ctypes.byref(now), ctypes.byref(later)):
            return []  # this GPU or this driver does not support MIG
        devices = []
        maximum = self._number("nvmlDeviceGetMaxMigDeviceCount", gpu) if now.value else 0
        for index in range(maximum):
            handle = ctypes.c_void_p()
            if not self._try(
                "nvmlDeviceGetMigDeviceHandleByIndex", gpu, index, ctypes.byref(handle)
            ):
                devices.append(self._mig_device(gpu, handle))
        return devices

    def _mig_device(self, gpu: ctypes.c_void_p, handle: ctypes.c_void_p) -> Device:
        minor = self._number("nvmlDeviceGetMinorNumber", gpu)
        instance = self._number("nvmlDeviceGetGpuInstanceId", handle)
        part = self._number("nvmlDeviceGetComputeInstanceId", handle)
        caps = mig_files(untrusted.read(MIG_MINORS), minor, instance, part)
        return Device(
            uuid=self._text("nvmlDeviceGetUUID", handle),
            name=self._text("nvmlDeviceGetName", handle),
            memory=self._total(handle),
            minor=minor,
            files=(f"/dev/nvidia{minor}", *caps),
            mig=True,
        )

    def _handle(self, uuid: str) -> ctypes.c_void_p:
        if uuid not in self._handles:
            handle = ctypes.c_void_p()
            self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(handle))
            self._handles[uuid] = handle
        return self._handles[uuid]

    def _text(self, name: str, handle: ctypes.c_void_p) -> str:
        text = ctypes.create_string_buffer(96)
        self._call(name, handle, text, ctypes.c_uint(len(text)))
        return untrusted.decode(text.value)

    def _number(self, name: str, handle: ctypes.c_void_p) -> int:
        number = ctypes.c_uint()
        self._call(name, handle, ctypes.byref(number))
        return number.value

    def _total(self, handle: ctypes.c_void_p) -> int:
        memory = _Memory()
        self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
        return int(memory.total)

    def _memory(self, handle: ctypes.c_void_p) -> _Memory2 | None:
        memory = _Memory2(version=ctypes.sizeof(_Memory2) | 2 << 24)
        failed = self._try("nvmlDeviceGetMemoryInfo_v2", handle, ctypes.byref(memory))
        return None if failed else memory

    def _call(self, name: str, *words: object) -> None:
        code = self._try(name, *words)
        if code:
            raise NvmlError(f"{name}: {code}", code)

    def _try(self, name: str, *words: object) -> int:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            return FUNCTION_NOT_FOUND
        return int(function(*words))


def _since(microseconds: int) -> ctypes.c_ulonglong:
    return ctypes.c_ulonglong(microseconds)


def mig_files(minors: str, gpu: int, instance: int, part: int) -> tuple[str, ...]:
    """The capability files of a MIG device, from /proc/driver/nvidia-caps/mig-minors."""
    numbers = dict(line.rsplit(" ", 1) for line in untrusted.lines(minors) if " " in line)
    names = (f"gpu{gpu}/gi{instance}/access", f"gpu{gpu}/gi{instance}/ci{part}/access")
    return tuple(f"/dev/nvidia-caps/nvidia-cap{numbers[name]}" for name in names if name in numbers)
