"""Fixtures for fractional GPUs: a stand-in driver, and the shim in front of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.gres.clients import Client

ROOT = Path(__file__).parents[3]
MIB = 1 << 20
UUID = "GPU-51195a90-0000-4000-8000-00000000000{}"
CAP = 1536 * MIB
BLOCK = 2 * MIB
"""What the driver hands out; a single byte takes all of it."""
GPU = UUID.format(0)


def make(source: str, out: Path, **variables: object) -> None:
    """Build one of the folders of C code; compiler output fails the test."""
    words = [f"{name}={value}" for name, value in {"OUT": out, **variables}.items()]
    done = subprocess.run(
        ["make", "--silent", "-C", str(ROOT / source), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Standin:
    """A stand-in driver with its own GPUs, whose device files are plain files."""

    directory: Path

    @property
    def cuda(self) -> Path:
        return self.directory / "libcuda.so.1"

    @property
    def nvml(self) -> Path:
        return self.directory / "libnvidia-ml.so.1"

    @property
    def smi(self) -> Path:
        return self.directory / "nvidia-smi"

    def device(self, number: int = 0) -> Path:
        return self.directory / f"nvidia{number}"

    def reset(self, gpus: int = 1, mib: int = 8192) -> None:
        """New, empty GPUs, accessible to everybody."""
        for old in self.directory.glob("nvidia[0-9]"):
            old.unlink()
        for number in range(gpus):
            self.device(number).touch()
        (self.directory / "nvidia-uvm").touch()
        self._run("reset", str(gpus), str(mib))

    def show(self) -> dict[str, Any]:
        """The current use: {"now_ns", "gpus": [{used, busy_ns…}], "processes": [{pid, bytes…}]}."""
        shown: dict[str, Any] = json.loads(self._run("show"))
        return shown

    def used(self, gpu: int = 0) -> int:
        """Bytes of a GPU's memory held by all processes, as counted by the hardware."""
        return int(self.show()["gpus"][gpu]["used"])

    def _run(self, *words: str) -> str:
        command = [str(self.directory / "standin"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True)
class Shim:
    """The shim of one session: its libraries, and the folder that root creates for it."""

    directory: Path
    libraries: Path

    @property
    def cuda(self) -> Path:
        return self.libraries / "libcuda.so.1"

    @property
    def nvml(self) -> Path:
        return self.libraries / "libnvidia-ml.so.1"

    def use_driver(self, folder: Path) -> None:
        """The driver that the node has from now on."""
        driver = self.directory / "driver"
        driver.unlink()
        driver.symlink_to(folder)

    def grant(self, *gpus: tuple[str, int, int], compute: str = "limiter") -> None:
        """A new slice, (UUID, bytes, percent of multiprocessors) per GPU, with empty counters."""
        lines = ["version=1", f"compute={compute}"]
        for uuid, memory, percent in gpus:
            lines += [f"gpu={uuid}", f"memory={memory}", f"sm={percent}"]
        (self.directory / "slice").write_text("\n".join(lines) + "\n")
        (self.directory / "counters").write_bytes(bytes(MIB))


@pytest.fixture(scope="session")
def standin_built(tmp_path_factory: pytest.TempPathFactory) -> Standin:
    """Built once; tests use `standin`."""
    directory = tmp_path_factory.mktemp("standin")
    make("tests/standin", directory, STATE=directory / "state", DEVICE=directory / "nvidia")
    return Standin(directory)


@pytest.fixture
def standin(standin_built: Standin) -> Standin:
    """An empty GPU of 8 GiB."""
    standin_built.reset()
    return standin_built


@pytest.fixture(scope="session")
def shim(standin_built: Standin, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Shim]:
    """Creates the shim of a session by its name; each is built once. Call grant() afterwards."""
    made: dict[str, Shim] = {}

    def session(name: str = "session") -> Shim:
        if name not in made:
            directory = tmp_path_factory.mktemp(name)
            libraries = tmp_path_factory.mktemp(f"{name}-shim")
            (directory / "driver").symlink_to(standin_built.directory)
            make("gres/shim", libraries, DIRECTORY=directory)
            made[name] = Shim(directory, libraries)
        return made[name]

    return session


def driver_before(standin: Standin, folder: Path, source: Path, *flags: str) -> Path:
    """The folder of a libcuda.so.1 that replaces some functions of the stand-in.

    It depends on the stand-in as the shim does, by an absolute path, which its macro STANDIN is.
    """
    folder.mkdir()
    empty = folder / "empty.so"
    soname = f"-Wl,-soname,{standin.cuda}"
    subprocess.run(
        ["gcc", "-shared", "-nostdlib", soname, "-x", "c", "/dev/null", "-o", empty], check=True
    )
    subprocess.run(
        [
            *("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"),
            *(f"-I{ROOT / 'tests' / 'standin'}", f'-DSTANDIN="{standin.cuda}"', *flags),
            *("-Wl,--no-as-needed", "-o", folder / "libcuda.so.1", source, empty, "-ldl"),
        ],
        check=True,
    )
    return folder


@pytest.fixture(scope="session")
def client_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that clients.py leads."""
    built = tmp_path_factory.mktemp("client") / "cuda_client"
    source = Path(__file__).with_name("cuda_client.c")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'tests' / 'standin'}"]
    subprocess.run(["gcc", *flags, "-pthread", "-o", built, source, "-ldl"], check=True)
    return built


@pytest.fixture(scope="module")
def program(client_program: Path) -> Path:
    return client_program


@pytest.fixture
def session(standin: Standin, shim: Callable[..., Shim]) -> Shim:
    """A session with a slice of the only GPU."""
    made = shim()
    made.grant((GPU, CAP, 100))
    return made


@pytest.fixture
def client(program: Path, session: Shim) -> Iterator[Client]:
    with Client(program, session.cuda) as made:
        yield made
