"""Root's command, the runner and the shim agree on the slice file (tests/golden/slice)."""

from __future__ import annotations

import subprocess
from pathlib import Path

from portal.node.gpu.slices import JobSlice, Part, parse_slice
from portal.node.runner.gpu.share import read_slice

from .conftest import ROOT, UUID

GOLDEN = ROOT / "tests" / "golden" / "slice"
GPUS = [(UUID.format(0), 2 << 30, 25), (UUID.format(1), 0, 100)]

PRINT = """
#include "slice.h"
#include <stdio.h>
int main(void)
{
    const struct slice *found = slice();
    printf("%d", found->compute == COMPUTE_LIMITER);
    for (int at = 0; at < found->count; at++)
        printf(" %s %llu %d", found->device[at].uuid, (unsigned long long)found->device[at].memory,
               found->device[at].sm_percent);
    return slice_find("GPU-none") == -1 ? slice_find(found->device[1].uuid) != 1 : 1;
}
"""


def test_roots_command_writes_and_reads_it() -> None:
    made = JobSlice("limiter", tuple(Part(*gpu) for gpu in GPUS))
    assert made.text() == GOLDEN.read_text()
    assert parse_slice(GOLDEN.read_text()) == made


def test_the_runner_reads_it() -> None:
    found = read_slice(str(GOLDEN.parent))
    assert found.compute == "limiter"
    assert [(share.gpu, share.memory, share.sm) for share in found.shares] == GPUS


def test_the_shim_reads_it(tmp_path: Path) -> None:
    shim, program = ROOT / "gres" / "shim", tmp_path / "program"
    options = ["-std=gnu11", "-Wall", "-Werror", "-include", "glibc_compat.h", "-I."]
    options.append(f'-DSLIPWAY_DIRECTORY="{GOLDEN.parent}"')
    subprocess.run(
        ["gcc", *options, "-o", str(program), "slice.c", "-x", "c", "-"],
        input=PRINT,
        text=True,
        cwd=shim,
        check=True,
    )
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", *(str(value) for gpu in GPUS for value in gpu)]
