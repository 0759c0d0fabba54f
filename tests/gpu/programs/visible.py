"""What NVML and nvidia-smi show in here:  visible.py NVIDIA-SMI  prints JSON.

Started as the first process of a PID namespace, as sessions are. A process that computes and holds
memory is started beside it; that one must be seen, and nobody else.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from saying import say

BUSY = 20
LOOKS = 6
QUERIES = {
    "plain": [],
    "-q": ["-q"],
    "pmon": ["pmon", "-c", "1", "-s", "um"],
    "apps": ["--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
    "utilisation": ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"],
}


class Process(ctypes.Structure):
    """nvmlProcessInfo_t."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class Rates(ctypes.Structure):
    """nvmlUtilization_t."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Sample(ctypes.Structure):
    """nvmlProcessUtilizationSample_t."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("time", ctypes.c_ulonglong),
        ("sm", ctypes.c_uint),
        ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint),
        ("decoder", ctypes.c_uint),
    )


class Nvml:
    """NVML's public functions."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libnvidia-ml.so.1")
        self._gpu = ctypes.c_void_p()
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(self._gpu))

    def _call(self, name: str, *words: object) -> None:
        if code := getattr(self._library, name)(*words):
            sys.exit(f"{name} answered {code}")

    def processes(self) -> dict[int, int]:
        count = ctypes.c_uint(64)
        found = (Process * 64)()
        name = "nvmlDeviceGetComputeRunningProcesses_v3"
        self._call(name, self._gpu, ctypes.byref(count), found)
        return {one.pid: one.memory for one in found[: count.value]}

    def utilisation(self) -> int:
        rates = Rates()
        self._call("nvmlDeviceGetUtilizationRates", self._gpu, ctypes.byref(rates))
        return int(rates.gpu)

    def samples(self) -> dict[int, int]:
        """Utilisation by PID, the newest."""
        count = ctypes.c_uint(256)
        found = (Sample * 256)()
        name = "nvmlDeviceGetProcessUtilization"
        code = getattr(self._library, name)(
            self._gpu, found, ctypes.byref(count), ctypes.c_ulonglong(0)
        )
        return {one.pid: one.sm for one in found[: count.value]} if not code else {}


def ask_smi(program: str) -> dict[str, dict[str, Any]]:
    """Everything that nvidia-smi is asked."""
    answers = {}
    for name, words in QUERIES.items():
        done = subprocess.run(
            [program, *words], capture_output=True, text=True, check=False, timeout=20
        )
        answers[name] = {"status": done.returncode, "text": done.stdout + done.stderr}
    return answers


def by_python() -> dict[int, int] | None:
    """The processes by nvidia-ml-py, where it is installed."""
    if importlib.util.find_spec("pynvml") is None:
        return None
    pynvml = importlib.import_module("pynvml")

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    return {
        one.pid: one.usedGpuMemory or 0 for one in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)
    }


def main(smi: str) -> None:
    """Start the process, and look."""
    program = str(Path(__file__).with_name("launches.py"))
    command = [sys.executable, program, "busy", str(BUSY), "1000", "0", "0.2"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as busy:
        assert busy.stdin
        assert busy.stdout
        pid = json.loads(busy.stdout.readline())["pid"]
        busy.stdin.write("\n")
        busy.stdin.flush()
        time.sleep(2)
        nvml = Nvml()
        looks = []
        samples: dict[int, int] = {}
        for _ in range(LOOKS):
            looks.append(nvml.utilisation())
            samples |= nvml.samples()
            time.sleep(0.5)
        say(
            pid=pid,
            processes=nvml.processes(),
            samples=samples,
            utilisation=looks,
            python=by_python(),
            smi=ask_smi(smi),
        )
        busy.kill()


main(*sys.argv[1:])
