"""A session's slice of a GPU without Slurm: the shim in front of this machine's own driver."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
WORK = Path(os.environ.get("SLIPWAY_GPU_WORK", ROOT / "build" / "gpu"))
PYTHON = os.environ.get("PYTHON", sys.executable)
"""The Python that has the frameworks."""

MIB = 1 << 20
SETTINGS = {"PYTHONDONTWRITEBYTECODE": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""CUDA and nvidia-smi agree on which GPU is the first."""
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")


@dataclass(frozen=True)
class Driver:
    """The libraries behind the shim. A folder named by SLIPWAY_GPU_DRIVER is searched first, to
    test this suite itself without a GPU.
    """

    libraries: dict[str, Path]
    standin: Path | None

    @classmethod
    def find(cls) -> Driver:
        """Those that programs on this machine would load."""
        if folder := os.environ.get("SLIPWAY_GPU_DRIVER"):
            return cls({name: Path(folder) / name for name in LIBRARIES}, Path(folder))
        if not Path("/proc/driver/nvidia/version").exists():
            raise FileNotFoundError("no NVIDIA driver runs here (/proc/driver/nvidia/version)")
        known = subprocess.run(
            ["ldconfig", "-p"], capture_output=True, text=True, check=True
        ).stdout
        found = {}
        for line in reversed(known.splitlines()):
            name, _, kind = line.strip().partition(" ")
            if name in LIBRARIES and ("x86-64" in kind or "AArch64" in kind):
                found[name] = Path(kind.split(" => ")[1]).resolve()
        missing = set(LIBRARIES) - set(found)
        if missing:
            raise FileNotFoundError(f"ldconfig knows no {', '.join(sorted(missing))}")
        return cls(found, None)


@dataclass(frozen=True)
class Gpu:
    """The first GPU of this machine, as its own driver sees it."""

    driver: Driver
    name: str
    uuid: str
    memory: int
    """Bytes."""
    version: str
    """The driver's version."""

    @classmethod
    def find(cls) -> Gpu:
        """Raises FileNotFoundError without a GPU."""
        driver = Driver.find()
        fields = ask_smi(driver, "name,uuid,memory.total,driver_version")
        if len(fields) != 4:
            raise FileNotFoundError("nvidia-smi shows no GPU")
        name, uuid, memory, version = fields
        return cls(driver, name, uuid, int(memory) * MIB, version)

    def used(self) -> int:
        """Bytes in use by all processes, measured without the shim."""
        return int(ask_smi(self.driver, "memory.used")[0]) * MIB


def ask_smi(driver: Driver, fields: str, **environment: str) -> list[str]:
    """nvidia-smi's output for the first GPU."""
    program = "nvidia-smi"
    if driver.standin:
        program = str(driver.standin / "nvidia-smi")
        environment = {"LD_LIBRARY_PATH": str(driver.standin)} | environment
    command = [program, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | environment
    )
    if done.returncode:
        raise FileNotFoundError(f"nvidia-smi: {done.stdout}{done.stderr}")
    return [field.strip() for field in done.stdout.splitlines()[0].split(",")]


class Session:
    """A slice and the shim that enforces it."""

    def __init__(self, name: str, gpu: Gpu) -> None:
        self.gpu = gpu
        self.directory = WORK / name
        self.shim = WORK / f"{name}-shim"
        real = self.directory / "driver"
        real.mkdir(parents=True, exist_ok=True)
        for library, path in gpu.driver.libraries.items():
            (real / library).unlink(missing_ok=True)
            (real / library).symlink_to(path)
        build = [f"OUT={self.shim}", f"DIRECTORY={self.directory}"]
        subprocess.run(["make", "--silent", "-C", str(ROOT / "gres/shim"), *build], check=True)

    def grant(self, memory: int, percent: int) -> Session:
        """Set another slice with nothing used; 0 bytes and 100 % mean no limits."""
        gpu = f"gpu={self.gpu.uuid}\nmemory={memory}\nsm={percent}\n"
        (self.directory / "slice").write_text(f"version=1\ncompute=limiter\n{gpu}")
        (self.directory / "counters").write_bytes(bytes(MIB))
        return self

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which programs find the shim. (Sessions bind it over the libraries.)"""
        path = f"{self.shim}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        return {"LD_LIBRARY_PATH": path, "TRITON_LIBCUDA_PATH": str(self.shim)}

    def smi(self, fields: str) -> list[str]:
        """nvidia-smi's output inside the session."""
        return ask_smi(self.gpu.driver, fields, **self.environment)

    def start(self, program: str, *words: object, **environment: str) -> Program:
        """Start one of programs/ inside."""
        return Program(program, words, self.environment | environment)

    def run(self, program: str, *words: object, **environment: str) -> dict[str, Any]:
        """The same, run to its end; its last message."""
        with self.start(program, *words, **environment) as started:
            return started.end()


def run_bare(gpu: Gpu, program: str, *words: object) -> dict[str, Any]:
    """The same with this machine's own driver, without the shim."""
    folder = gpu.driver.standin
    environment = {"LD_LIBRARY_PATH": str(folder)} if folder else {}
    with Program(program, words, environment) as started:
        return started.end()


class Program:
    """A running program. It prints findings as lines of JSON; at a pause it waits for go_on."""

    def __init__(
        self, program: str, words: tuple[object, ...], environment: dict[str, str]
    ) -> None:
        self._process = subprocess.Popen(
            [PYTHON, str(PROGRAMS / f"{program}.py"), *map(str, words)],
            env=os.environ | SETTINGS | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def next_message(self) -> dict[str, Any]:
        """The program's next message."""
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith("{"):
                output: dict[str, Any] = json.loads(line)
                return output
        raise AssertionError(f"the program ended with {self._process.wait()}; see above for why")

    def go_on(self) -> None:
        """Continue after a pause."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # it was not waiting, and has ended
            self._process.stdin.write("\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        """As kill -9."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def end(self) -> dict[str, Any]:
        """Wait for the end; its last message."""
        self.go_on()
        assert self._process.stdout
        output = [line for line in self._process.stdout if line.startswith("{")]
        status = self._process.wait()
        assert status == 0, f"it ended with {status}; see above for why"
        last: dict[str, Any] = json.loads(output[-1])
        return last
