"""Programs can be linked against the shim, although the driver is only its dependency."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.gres.conftest import MIB, ROOT, UUID, Shim, Standin, driver_before

CAP = 256 * MIB
EXPORTS = [
    line
    for line in (ROOT / "gres" / "shim" / "exports.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.fixture
def session(standin: Standin, shim: Callable[..., Shim]) -> Shim:
    made = shim()
    made.grant((UUID.format(0), CAP, 100))
    return made


def link(folder: Path, source: str, session: Shim, *flags: str, library: str = "cuda") -> Path:
    program = folder / "linked"
    found = [f"-L{session.libraries}", f"-l:{getattr(session, library).name}"]
    subprocess.run(
        ["gcc", "-Wall", "-Werror", "-x", "c", "-", "-o", program, *flags, *found],
        input=source,
        text=True,
        check=True,
    )
    return program


def run(program: Path, session: Shim, **environment: str) -> int:
    """Its exit code."""
    found = {"LD_LIBRARY_PATH": str(session.libraries), **environment}
    return subprocess.run([program], env=found, check=False, timeout=30).returncode


def defined(library: Path) -> set[str]:
    """The functions that programs can be linked to."""
    command = ["nm", "--dynamic", "--defined-only", "--format=posix", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line.split()[0] for line in done.stdout.splitlines()}


USES_CUDA = f"""
    #include <stddef.h>
    int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
    int cuMemGetInfo_v2(size_t *, size_t *), cuStreamCreate(void **, unsigned);
    int main(void)
    {{
        void *context, *stream;
        size_t left, total;
        return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
               cuMemGetInfo_v2(&left, &total) || total != {CAP}u || cuStreamCreate(&stream, 0);
    }}
"""
"""Wrapped functions and others."""


@pytest.mark.parametrize("flags", [[], ["-Wl,--no-undefined"], ["-Wl,-z,now"]])
@pytest.mark.parametrize("environment", [{}, {"LD_BIND_NOW": "1"}])
def test_an_executable_is_linked_and_runs(
    flags: list[str], environment: dict[str, str], tmp_path: Path, session: Shim
) -> None:
    assert run(link(tmp_path, USES_CUDA, session, *flags), session, **environment) == 0


def test_a_library_without_undefined_symbols(tmp_path: Path, session: Shim) -> None:
    source = "int cuInit(unsigned); int begin(void); int begin(void) { return cuInit(0); }"
    flags = ["-shared", "-fPIC", "-Wl,--no-undefined"]
    assert "begin" in defined(link(tmp_path, source, session, *flags))


def test_a_program_of_nvml_is_linked_and_runs(tmp_path: Path, session: Shim) -> None:
    source = """
        int nvmlInit_v2(void), nvmlDeviceGetCount_v2(unsigned *), nvmlShutdown(void);
        int main(void)
        {
            unsigned count;
            return nvmlInit_v2() || nvmlDeviceGetCount_v2(&count) || count != 1 || nvmlShutdown();
        }
    """
    assert run(link(tmp_path, source, session, library="nvml"), session) == 0


@pytest.mark.parametrize(
    ("library", "prefix", "error"), [("cuda", "cu", 801), ("nvml", "nvml", 13)]
)
def test_what_the_driver_lacks_returns_an_error(
    library: str, prefix: str, error: int, tmp_path: Path, session: Shim, standin: Standin
) -> None:
    """CUDA_ERROR_NOT_SUPPORTED and NVML_ERROR_FUNCTION_NOT_FOUND."""
    there = defined(getattr(standin, library))
    lacking = sorted(name for name in EXPORTS if name.startswith(prefix) and name not in there)
    assert len(lacking) > 100
    declared = "".join(f"int {name}(void);\n" for name in lacking)
    calls = "".join(
        f"if ({name}() != {error} || {name}() != {error}) return 1;\n" for name in lacking
    )
    source = f"{declared} int main(void) {{ {calls} return 0; }}"
    assert run(link(tmp_path, source, session, library=library), session) == 0


def test_every_name_is_exported_and_sorted_and_not_twice(session: Shim) -> None:
    assert sorted(set(EXPORTS), key=os.fsencode) == EXPORTS
    assert set(EXPORTS) <= defined(session.cuda) | defined(session.nvml)
    assert [name for name in defined(session.cuda) if not name.startswith("cu")] == []
    assert [name for name in defined(session.nvml) if not name.startswith("nvml")] == []


TAKES = """
    long a, long b, long c, long d, long e, long f, long g, long h, long i, long j,
    double k, double l, double m, double n, double o, double p, double q, double r, double s,
    float t, struct pair u, struct triple v, __int128 w
"""
CHECKS = f"""
    struct pair {{ double first; long second; }};
    struct triple {{ long first, second, third; }};
    double cuFuncSetBlockShape({TAKES});
"""
"""The driver's function has other parameters, which are not of interest here."""
COUNTING_DRIVER = f"""
    {CHECKS}
    double cuFuncSetBlockShape({TAKES})
    {{
        return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j +
               11 * k + 12 * l + 13 * m + 14 * n + 15 * o + 16 * p + 17 * q + 18 * r + 19 * s +
               20 * t + 21 * u.first + 22 * u.second + 23 * v.first + 24 * v.second +
               25 * v.third + 26 * (double)w;
    }}
    int cuFuncSetSharedSize(const char *format, ...);
    #include <stdarg.h>
    int cuFuncSetSharedSize(const char *format, ...)
    {{
        va_list list;
        double sum = 0;
        va_start(list, format);
        for (; *format; format++)
            sum += *format == 'd' ? va_arg(list, double) : va_arg(list, int);
        va_end(list);
        return (int)sum;
    }}
"""
"""Its answers depend on each argument."""


def test_arguments_in_registers_and_on_the_stack_survive_the_first_call(
    tmp_path: Path, standin: Standin, shim: Callable[..., Shim]
) -> None:
    source = tmp_path / "many.c"
    source.write_text(COUNTING_DRIVER)
    session = shim("linking")
    session.use_driver(driver_before(standin, tmp_path / "driver", source))
    session.grant((UUID.format(0), CAP, 100))
    numbers = ", ".join(str(number) for number in (*range(1, 11),))
    reals = ", ".join(f"{number}.5" for number in range(11, 20))
    expected = sum(n * n for n in range(1, 11)) + sum(n * (n + 0.5) for n in range(11, 20))
    expected += 20 * 20.25 + 21 * 0.5 + 22 * 7 + 23 * 1 + 24 * 2 + 25 * 3 + 26 * 5
    program = link(
        tmp_path,
        f"""
        {CHECKS}
        int cuFuncSetSharedSize(const char *format, ...);
        static double once(void)
        {{
            return cuFuncSetBlockShape({numbers}, {reals}, 20.25f, (struct pair){{0.5, 7}},
                                       (struct triple){{1, 2, 3}}, 5);
        }}
        int main(void)
        {{
            if (once() != {expected} || once() != {expected})
                return 1;
            return cuFuncSetSharedSize("didid", 0.5, 1, 1.5, 2, 3.0) != 8;
        }}
        """,
        session,
    )
    assert run(program, session) == 0
    assert run(program, session, LD_BIND_NOW="1") == 0
