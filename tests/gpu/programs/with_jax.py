"""JAX in a slice:  with_jax.py CASE …  prints its findings as JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from saying import say

STEP = 64 << 20


def fill(most: str) -> None:
    """First its usual share of all memory, by default three quarters; then the rest."""
    device = jax.devices("gpu")[0]
    right = float((jnp.ones((512, 512)) @ jnp.ones((512, 512)))[0, 0]) == 512.0
    limit = (device.memory_stats() or {}).get("bytes_limit", 0)
    held: list[Any] = []
    error = ""
    while not error and len(held) * STEP < int(most):
        try:
            held.append(jax.device_put(jnp.zeros(STEP, dtype=jnp.uint8), device))
            held[-1].block_until_ready()
        except jax.errors.JaxRuntimeError as refused:
            error = str(refused).split(":", maxsplit=1)[0]
    say(limit=limit, held=len(held) * STEP, error=error, result=right)


def buffers() -> None:
    """A compiled loop of several small kernels, which XLA makes a graph of (command buffers)."""

    @jax.jit  # type: ignore[untyped-decorator]
    def step(data: jax.Array) -> jax.Array:
        for _ in range(6):
            data = jnp.sin(data @ data / 64) + 1
        return data

    data = jnp.eye(64)
    for _ in range(50):
        data = step(data)
    finite = bool(jnp.isfinite(data).all())
    say(result={"finite": finite, "sum": round(float(data.sum()), 1)})


CASES: dict[str, Callable[..., None]] = {"fill": fill, "buffers": buffers}

if __name__ == "__main__":
    CASES[sys.argv[1]](*sys.argv[2:])
