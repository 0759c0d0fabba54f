"""What a slice of memory holds, by every way to allocate, and what the driver takes itself."""

from __future__ import annotations

from tests.gpu.case import Trial, case
from tests.gpu.machine import MIB
from tests.gpu.session import start_bare
from tests.unit.gres.memory.rounding import table

GIB = 1 << 30
SIZES = {4096: GIB // 4, 786_432: GIB, 1_048_577: 2 * GIB, 2_097_153: 2 * GIB, 3_145_729: 2 * GIB}
"""Sizes of pieces, and how much of each is allocated."""
EXACT = 1.02
CONTEXT = 1024
"""MiB that the watchdog's margin leaves for a process's context (the default of margin_mb)."""


@case("1", 60, f"what the driver takes for small pieces is charged: taken / charged ≤ {EXACT}")
def pieces(trial: Trial) -> None:
    session = trial.session()
    for size, wanted in SIZES.items():
        total = min(wanted, trial.cap // 2)
        session.grant(trial.cap, 100)
        with session.start("memory", "context") as idle:
            idle.next_message()
            before = trial.gpu.used()
            idle.end()
        with session.start("memory", "pieces", size, total) as program:
            seen = program.next_message()
            taken = trial.gpu.used() - before
            program.end()
        ratio = taken / seen["charged"]
        trial.check(
            f"{seen['count']} pieces of {size}",
            f"{ratio:.3f}",
            good=0.5 < ratio <= EXACT,
            must=f"≤ {EXACT}",
        )
        known = table().get(size)
        if known is not None and total >= 64 * MIB:
            trial.check(
                f"taken for each of {size}",
                taken // seen["count"],
                good=abs(taken / seen["count"] / known - 1) <= EXACT - 1,
                must=f"{known}, as cuda_blocks.h has it",
            )
        each = f"taken {taken // seen['count']}, charged {seen['charged'] // seen['count']}"
        trial.note(f"A piece of {size} bytes", each)


@case("1", 60, f"a context takes less than {CONTEXT} MiB, also one with cuBLAS and cuDNN")
def context(trial: Trial) -> None:
    _context(trial, "nothing but the driver", "memory")
    if trial.has("torch"):
        _context(trial, "PyTorch with cuBLAS and cuDNN", "torch_memory")
    else:
        trial.note("Context: PyTorch with cuBLAS and cuDNN", "not measured: no torch")


def _context(trial: Trial, name: str, program: str) -> None:
    before = trial.gpu.used()
    with start_bare(trial.gpu, program, "context") as started:
        seen = started.next_message()
        device = trial.gpu.used() - before
        own = trial.held(seen["pid"])
        started.end()
    found = max(device, own or 0) - seen.get("tensors", 0)
    trial.check(
        name, f"{found / MIB:.0f} MiB", good=0 < found < CONTEXT * MIB, must=f"< {CONTEXT} MiB"
    )
    by_process = "not told" if own is None else f"{own / MIB:.0f} MiB"
    trial.note(f"Context: {name}", f"{device / MIB:.0f} MiB of the GPU, by process {by_process}")


@case("1", 20, "a heap of 4 GiB in the context is refused, or NVML shows it at the process")
def heap(trial: Trial) -> None:
    size = min(4 * GIB, trial.cap // 2)
    with trial.session().start("memory", "heap", size) as program:
        seen = program.next_message()
        own = trial.held(seen["pid"])
        program.end()
    shown = "not told" if own is None else f"{own / MIB:.0f} MiB"
    if not any(seen["answers"]) and trial.gpu.real:
        trial.check(
            "NVML, of the process",
            shown,
            good=own is not None and own >= size,
            must=f"≥ {size / MIB:.0f} MiB",
        )
    trial.note(
        "Heap of a context",
        f"{size / MIB:.0f} MiB: answers {seen['answers']}, charged "
        f"{seen['charged'] / MIB:.0f} MiB, NVML shows {shown}",
    )


@case("1", 20, "managed memory is charged in full, and refused beyond the slice")
def managed(trial: Trial) -> None:
    size = trial.cap // 2
    before = trial.gpu.used()
    with trial.session().start("memory", "managed", size) as program:
        seen = program.next_message()
        device, own = trial.gpu.used() - before, trial.held(seen["pid"])
        program.end()
    trial.check("charged", seen["charged"], good=seen["charged"] >= size, must=f"≥ {size}")
    trial.check("more than the slice refused", seen["refused"], good=seen["refused"], must="True")
    shown = "not told" if own is None else f"{own / MIB:.0f} MiB"
    trial.note(
        "Managed memory",
        f"{size / MIB:.0f} MiB: the GPU has {device / MIB:.0f} MiB more in "
        f"use, NVML shows {shown} at the process",
    )


def _fill(trial: Trial, kind: str) -> None:
    session = trial.session()
    before = trial.gpu.used()
    with session.start("memory", "fill", kind, trial.cap * 2) as program:
        seen = program.next_message()
        outside = trial.gpu.used() - before - trial.cap
        program.end()
    held = seen["held"] / trial.cap
    trial.check("held", f"{held:.3f} of the slice", good=0.99 <= held <= 1, must="0.99 to 1")
    trial.check("half of it more is refused", seen["refused"], good=seen["refused"], must="True")
    trial.note(f"Filled ({kind})", f"{held:.3f} of the slice")
    if kind == "plain":
        trial.note("Beyond the slice, by the driver", f"{max(0, outside) / MIB:.0f} MiB")


@case("2a", 20, "cuMemAlloc fills ≥ 99 % of the slice, and not more")
def fill_plain(trial: Trial) -> None:
    _fill(trial, "plain")


@case("2a", 20, "cuMemAllocAsync fills ≥ 99 % of the slice, and not more")
def fill_async(trial: Trial) -> None:
    _fill(trial, "async")


@case("2a", 20, "cuMemAllocManaged fills ≥ 99 % of the slice, and not more")
def fill_managed(trial: Trial) -> None:
    _fill(trial, "managed")


@case("2a", 25, "200 times 80 % of the slice leave nothing behind, plain and managed")
def cycles(trial: Trial) -> None:
    for kind in ("plain", "managed"):
        seen = trial.small_session().run("memory", "cycles", kind, 200)
        trial.check(
            f"free after them ({kind})",
            seen["after"],
            must=str(seen["before"]),
            good=seen["after"] == seen["before"],
        )


@case("2a", 10, "CUDA and nvidia-smi show the slice as the GPU")
def told(trial: Trial) -> None:
    session = trial.session()
    total = session.run("memory", "memory")["total"]
    trial.check("CUDA's total", total, good=total == trial.cap, must=str(trial.cap))
    shown = int(session.smi("memory.total")[0])
    trial.check(
        "nvidia-smi's total",
        shown,
        good=abs(shown - trial.cap / MIB) <= 1,
        must=f"{trial.cap / MIB:.0f} MiB",
    )
