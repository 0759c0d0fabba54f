"""JAX in a slice: first allocates its usual share of all memory, then the rest; prints JSON."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from saying import say

STEP = 64 << 20


def main() -> None:
    """By default JAX allocates three quarters of what it sees as total."""
    device = jax.devices("gpu")[0]
    right = float((jnp.ones((512, 512)) @ jnp.ones((512, 512)))[0, 0]) == 512.0
    limit = device.memory_stats()["bytes_limit"]
    held, error = [], ""
    while not error:
        try:
            held.append(jax.device_put(jnp.zeros(STEP, dtype=jnp.uint8), device))
            held[-1].block_until_ready()
        except jax.errors.JaxRuntimeError as refused:
            error = str(refused).split(":", maxsplit=1)[0]
    say(limit=limit, held=len(held) * STEP, error=error, right=right)


main()
