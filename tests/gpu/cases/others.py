"""Other frameworks in a slice. Each runs without the shim first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.gpu.case import Trial, case

GIB = 1 << 30
BARE_FILL = 2 * GIB


def _check_held(trial: Trial, seen: dict[str, Any], least: float) -> None:
    held = seen["held"] / trial.cap
    trial.check("right", seen["result"], good=bool(seen["result"]), must="True")
    trial.check("error", seen["error"], good=bool(seen["error"]), must="the framework's own")
    trial.check("held", f"{held:.3f}", good=least <= held <= 1, must=f"{least} to 1")


def _cupy(trial: Trial, pool: str) -> None:
    trial.bare("with_cupy", "fill", pool, BARE_FILL)
    seen = trial.session().run("with_cupy", "fill", pool, 2 * trial.cap)
    _check_held(trial, seen, 0.9)
    trial.check("total", seen["total"], good=seen["total"] == trial.cap, must=str(trial.cap))


@case("2c", 35, "CuPy's own pool fills the slice, and not more", frameworks=("cupy",))
def cupy_fill(trial: Trial) -> None:
    _cupy(trial, "own")


@case("2c", 35, "CuPy with the driver's pool fills the slice, and not more", frameworks=("cupy",))
def cupy_fill_async(trial: Trial) -> None:
    _cupy(trial, "async")


@case("2c", 30, "CuPy on several streams: the same result", frameworks=("cupy",))
def cupy_streams(trial: Trial) -> None:
    trial.same(trial.session(percent=50), "with_cupy", "streams")


def _jax(trial: Trial, least: float, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    trial.bare("with_jax", "fill", BARE_FILL, env=env)
    seen = trial.session().run("with_jax", "fill", 2 * trial.cap, env=env)
    _check_held(trial, seen, least)
    trial.check(
        "its error",
        seen["error"],
        good=seen["error"] == "RESOURCE_EXHAUSTED",
        must="RESOURCE_EXHAUSTED",
    )
    return seen


@case("2c", 50, "JAX takes its 75 % of the slice, and not more", frameworks=("jax",))
def jax_fill(trial: Trial) -> None:
    limit = _jax(trial, 0.6)["limit"]
    trial.check(
        "bytes_limit", limit, good=abs(limit / trial.cap - 0.75) < 0.05, must="75 % of the slice"
    )


@case("2c", 45, "JAX without preallocation fills its 75 % by and by", frameworks=("jax",))
def jax_growing(trial: Trial) -> None:
    _jax(trial, 0.6, env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})


@case("2c", 50, "JAX with the driver's own allocations fills the slice", frameworks=("jax",))
def jax_platform(trial: Trial) -> None:
    _jax(trial, 0.8, env={"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"})


@case("2c", 45, "JAX with command buffers (graphs): the same result", frameworks=("jax",))
def jax_buffers(trial: Trial) -> None:
    flags = (
        "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT --xla_gpu_graph_min_graph_size=1"
    )
    trial.same(trial.session(percent=99), "with_jax", "buffers", env={"XLA_FLAGS": flags})


@case(
    "2c",
    40,
    "Triton finds the shim by itself: right result, total of the slice",
    frameworks=("triton", "torch"),
)
def triton(trial: Trial) -> None:
    session = trial.session(percent=50)
    seen = trial.same(session, "with_triton")
    trial.check("total", seen["total"], good=seen["total"] == trial.cap, must=str(trial.cap))
    shim = str(session.shim / "libcuda.so.1")
    trial.check("libraries", seen["libraries"], good=shim in seen["libraries"], must=shim)


@case(
    "2c",
    30,
    "Numba on two streams: the same result, total of the slice",
    frameworks=("numba", "numba.cuda"),
)
def numba(trial: Trial) -> None:
    seen = trial.same(trial.session(percent=50), "with_numba")
    trial.check("total", seen["total"], good=seen["total"] == trial.cap, must=str(trial.cap))


@case(
    "2c",
    25,
    "cuda.core compiles, launches and allocates: the same result",
    frameworks=("cuda.core",),
)
def cuda_core(trial: Trial) -> None:
    trial.same(trial.session(percent=50), "with_cuda_core")


@case("2c", 50, "TensorFlow multiplies on the GPU: the same result", frameworks=("tensorflow",))
def tensorflow(trial: Trial) -> None:
    trial.same(trial.session(), "with_tensorflow")
