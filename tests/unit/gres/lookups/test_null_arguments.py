"""A null pointer is the driver's to judge: the shim neither uses it nor changes the answer."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.gres.conftest import MIB, ROOT, UUID, Shim, Standin, driver_before
from tests.unit.gres.lookups.wrapped import wrapped_functions

INVALID_VALUE = 1
INVALID_HANDLE = 400 & 255
HERE = Path(__file__).parent
SUCCEED = {
    *("cuMemFree_v2", "cuMemFree", "cuMemFreeAsync", "cuMemFreeAsync_ptsz"),
    *("cuStreamSynchronize", "cuStreamSynchronize_ptsz", "cuCtxSynchronize_v2"),
    *("cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync", "cuLaunchKernel", "cuLaunchKernel_ptsz"),
    *("cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz"),
}
"""For which null is a value, or whose function the stand-in does not look at."""
WITHOUT_POINTERS = {
    *("cuCtxSynchronize", "cuDeviceGraphMemTrim"),
    *(f"cuDevicePrimaryCtx{end}{form}" for end in ("Release", "Reset") for form in ("", "_v2")),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("nulls") / "null_arguments"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'tests' / 'standin'}"]
    source = HERE / "null_arguments.c"
    subprocess.run(["gcc", *flags, "-o", built, source, "-ldl"], check=True)
    return built


def answers(program: Path, library: Path) -> dict[str, str]:
    done = subprocess.run([program, library], capture_output=True, text=True, check=True)
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("sm", [100, 50])
def test_the_shim_answers_as_the_driver_does(
    sm: int, program: Path, standin: Standin, shim: Callable[..., Shim]
) -> None:
    session = shim()
    session.grant((UUID.format(0), 256 * MIB, sm))
    bare = answers(program, standin.cuda)
    assert answers(program, session.cuda) == bare
    for call, result in bare.items():
        if call.partition("(")[0] not in SUCCEED and not call.endswith(
            "&pointer, 12000, 0ull, NONE)"
        ):
            assert result not in ("0", "signal"), call


def test_every_wrapped_function_is_asked(program: Path, standin: Standin, tmp_path: Path) -> None:
    named = {call.partition("(")[0] for call in answers(program, standin.cuda)}
    assert wrapped_functions(tmp_path) - named == WITHOUT_POINTERS


def test_also_a_driver_that_takes_null_pointers_does_not_make_it_crash(
    program: Path, standin: Standin, shim: Callable[..., Shim], tmp_path: Path
) -> None:
    session = shim("tolerant")
    source = HERE / "tolerant_driver.c"
    session.use_driver(driver_before(standin, tmp_path / "driver", source))
    session.grant((UUID.format(0), 256 * MIB, 100))
    given = answers(program, session.cuda)
    assert [call for call, result in given.items() if result == "signal"] == []
    assert given["cuMemGetInfo_v2(NONE, &size)"] == "0"
