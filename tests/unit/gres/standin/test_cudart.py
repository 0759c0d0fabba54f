"""CUDA's real runtime library: what it looks up in the driver at its start, over 400 functions.

It comes as far as the private tables of functions that it asks the driver for. The last of them is
to prove that the driver is NVIDIA's (tests/standin/README.md), so no more of it runs here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.gres.conftest import MIB, UUID, Shim, Standin
from tests.unit.gres.packages import fetched

HERE = Path(__file__).parent
PACKAGES = {"12": "nvidia-cuda-runtime-cu12==12.9.*", "13": "nvidia-cuda-runtime==13.*"}

# What the shim and the driver answer to the same question, by their symbols' names.
ANSWERS = """
import ctypes as c, sys
class Symbol(c.Structure):
    _fields_ = [(x, c.c_char_p if "name" in x else c.c_void_p) for x in
                ("fname", "fbase", "sname", "saddr")]
library, found, status = c.CDLL(sys.argv[1]), c.c_void_p(), c.c_int()
dladdr = c.CDLL(None).dladdr
for line in open(sys.argv[2]):
    name, version, flags, _ = line.split(" ")
    library.cuGetProcAddress_v2(name.encode(), c.byref(found), int(version), c.c_uint64(int(flags)),
                                c.byref(status))
    symbol = Symbol()
    if found.value: assert dladdr(found, c.byref(symbol))
    print(name, version, flags, (symbol.sname or b"-").decode(), (symbol.fname or b"-").decode())
"""


@pytest.fixture(params=["12", "13"])
def package(request: pytest.FixtureRequest) -> Path:
    """The folder of a version's libraries."""
    folder = fetched(PACKAGES[request.param])
    return next(folder.glob("nvidia/**/libcudart.so.*")).parent


def compiled(package: Path, folder: Path, *, static: bool) -> Path:
    """The client with the runtime library in it, or beside it."""
    shared = next(package.glob("libcudart.so.*"))
    beside = [str(shared), f"-Wl,-rpath,{package}"]
    inside = [str(package / "libcudart_static.a"), "-ldl", "-lpthread", "-lrt"]
    program = folder / "cudart_client"
    words = ["gcc", "-o", str(program), str(HERE / "cudart_client.c")]
    subprocess.run(words + (inside if static else beside), check=True)
    return program


def looked_up(program: Path, library: Path, folder: Path) -> tuple[str, list[str]]:
    """The runtime library's error, and what it has looked up, with the driver's answers."""
    notes = folder / f"lookups-{library.parent.name}"
    done = subprocess.run(
        [program],
        capture_output=True,
        text=True,
        check=True,
        env={
            "LD_LIBRARY_PATH": str(library.parent),
            "STANDIN_LOOKUPS": str(notes),
            "SLIPWAY_GPU_TRACE": "1",
        },
    )
    assert "refused" not in done.stderr, done.stderr
    return done.stdout.strip(), notes.read_text().splitlines()


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_lookups_are_the_same_with_the_shim(
    standin: Standin, shim: Callable[..., Shim], package: Path, tmp_path: Path, static: bool
) -> None:
    session = shim()
    session.grant((UUID.format(0), 2048 * MIB, 25))
    program = compiled(package, tmp_path, static=static)
    error, lookups = looked_up(program, standin.cuda, tmp_path)
    assert error == "cudaErrorNotSupported"  # of the first private table, after all look-ups
    assert len(lookups) > 400
    assert looked_up(program, session.cuda, tmp_path) == (error, lookups)
    assert answers(session.cuda, tmp_path) == expected(lookups, session, standin)


def answers(library: Path, folder: Path) -> list[str]:
    notes = folder / f"lookups-{library.parent.name}"
    return subprocess.run(
        [sys.executable, "-c", ANSWERS, str(library), str(notes)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


def expected(lookups: list[str], session: Shim, standin: Standin) -> list[str]:
    """The driver's function, or the shim's of the same name where the shim wraps it."""
    objects = sorted(map(str, (session.libraries / "cuda").glob("*.o")))
    names = subprocess.run(
        ["nm", "--format=posix", "--defined-only", "--extern-only", *objects],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    wrapped = {line.split()[0] for line in names.splitlines() if line.startswith("cu")}
    assert {"cuMemAlloc_v2", "cuMemAllocAsync_ptsz", "cuLaunchKernel"} <= wrapped
    driver = session.directory / "driver" / standin.cuda.name
    files = {True: str(session.cuda), False: str(driver)}
    symbols = [line.rsplit(" ", 1)[1] for line in lookups]
    return [
        line + " " + ("-" if symbol == "-" else files[symbol in wrapped])
        for line, symbol in zip(lookups, symbols, strict=True)
    ]
