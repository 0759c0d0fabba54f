"""PyTorch in a slice. Programs run without the shim first, so that a failure says whose it is."""

from __future__ import annotations

from tests.gpu.case import Trial, case
from tests.gpu.machine import MIB
from tests.gpu.session import Session

GIB = 1 << 30
TORCH = ("torch",)
EXPANDABLE = "expandable_segments:True"
ASYNC = "backend:cudaMallocAsync"
BARE_FILL = 4 * GIB
"""Filled without the shim, to see that the allocator works; not the whole GPU."""


def _fill(trial: Trial, name: str, settings: str) -> None:
    # The older name of the variable, which newer versions know, too.
    variables = {"PYTORCH_CUDA_ALLOC_CONF": settings}
    trial.bare("torch_memory", "fill", BARE_FILL, env=variables)
    session = trial.session()
    before = trial.gpu.used()
    with session.start("torch_memory", "fill", 2 * trial.cap, env=variables) as program:
        seen = program.next_message()
        outside = trial.gpu.used() - before - trial.cap
        program.end()
    held = seen["held"] / trial.cap
    trial.check(
        "error", seen["error"], good=seen["error"] == "OutOfMemoryError", must="OutOfMemoryError"
    )
    trial.check("total", seen["total"], good=seen["total"] == trial.cap, must=str(trial.cap))
    trial.check(
        "held",
        f"{held:.3f}",
        good=trial.cap - GIB <= seen["held"] <= trial.cap,
        must="at most 1 GiB below the slice",
    )
    trial.check(
        "beyond the slice",
        f"{outside / MIB:.0f} MiB",
        good=outside < GIB,
        must="a context, < 1 GiB",
    )
    trial.note(f"PyTorch, {name}: filled", f"{held:.3f} of the slice")


@case(
    "2b",
    55,
    "its own allocator fills the slice, not more, and reports its own error",
    frameworks=TORCH,
)
def torch_fill(trial: Trial) -> None:
    _fill(trial, "its own allocator", "")


@case("2b", 35, "the same with expandable segments", frameworks=TORCH)
def torch_fill_expandable(trial: Trial) -> None:
    _fill(trial, "expandable segments", EXPANDABLE)


@case("2b", 35, "the same with cudaMallocAsync", frameworks=TORCH)
def torch_fill_async(trial: Trial) -> None:
    _fill(trial, "cudaMallocAsync", ASYNC)


@case("2b", 35, "while one process fills the slice another one gets nothing", frameworks=TORCH)
def torch_two_processes(trial: Trial) -> None:
    session = trial.session()
    with session.start("torch_memory", "fill", 2 * trial.cap) as first:
        held = first.next_message()["held"]
        got = session.run("memory", "hold", 0.1)["got"]
        trial.check("10 % for the second", got, good=not got, must="False")
        trial.check("the first holds", held, good=held <= trial.cap, must=f"≤ {trial.cap}")
        first.end()


@case(
    "2b",
    35,
    "graphs with memory of their own replay 1000 times; too much in one is refused",
    frameworks=TORCH,
)
def torch_graphs(trial: Trial) -> None:
    found = trial.same(trial.session(percent=99), "torch_work", "graphs")["result"]
    trial.check("graphs", found, good=found == {"right": True, "refused": True}, must="both")


@case("2b", 35, "200 times 80 % of the slice leave nothing behind", frameworks=TORCH)
def torch_cycles(trial: Trial) -> None:
    session = trial.small_session()
    size = session.memory * 4 // 5  # without the shim the same, not 80 % of the GPU
    _, seen = trial.beside(session, "torch_memory", "cycles", 200, size)
    trial.check(
        "free after them",
        seen["after"],
        good=seen["after"] == seen["before"],
        must=str(seen["before"]),
    )


@case("2b", 45, "a crash in one session leaves the neighbour's results right", frameworks=TORCH)
def torch_crash(trial: Trial) -> None:
    with trial.session(2).start("torch_work", "survive") as neighbour:
        neighbour.next_message()
        trial.same(trial.session(1), "torch_work", "crash")
        right = neighbour.end()["right"]
    trial.check("the neighbour's result", right, good=right, must="True")
    trial.note("A neighbour's crash", "survived" if right else "not survived")


@case("2b", 25, "device properties and mem_get_info say the slice", frameworks=TORCH)
def torch_told(trial: Trial) -> None:
    seen = trial.same(trial.session(), "torch_memory", "told")
    for place in ("properties", "mem_get_info"):
        trial.check(place, seen[place], good=seen[place] == trial.cap, must=str(trial.cap))
    trial.check("GPUs", seen["devices"], good=seen["devices"] == 1, must="1")


def _feature(trial: Trial, name: str, session: Session | None = None) -> None:
    trial.same(session or trial.session(percent=50), "torch_features", name)


@case("2b", 35, "side streams that prefetch: the same result as without the shim", frameworks=TORCH)
def torch_streams(trial: Trial) -> None:
    _feature(trial, "streams")


@case("2b", 50, "DataLoader workers that use the GPU: the same result", frameworks=TORCH)
def torch_workers(trial: Trial) -> None:
    _feature(trial, "workers")


@case("2b", 75, "torch.compile with graphs: the same result", frameworks=("torch", "triton"))
def torch_compile(trial: Trial) -> None:
    _feature(trial, "compiled", trial.session(percent=99))


@case("2b", 30, "attention in half precision, both directions: the same result", frameworks=TORCH)
def torch_attention(trial: Trial) -> None:
    _feature(trial, "attention")


@case("2b", 35, "the profiler sees the kernels", frameworks=TORCH)
def torch_profiler(trial: Trial) -> None:
    _feature(trial, "profiler")
