"""The steps: each ends within ten minutes, the most telling one first."""

from __future__ import annotations

from tests.gpu.case import Case, all_cases

STEPS = {
    "1": "look-ups, launches, capture, rounding, contexts, debt (about a minute)",
    "2a": "memory, sessions side by side, NVML, the watchdog, MPS, linking (about 2 minutes)",
    "2b": "PyTorch (about 3 minutes)",
    "2c": "CuPy, JAX, Triton, Numba, cuda.core, TensorFlow, debuggers (about 2 minutes)",
}
"""Step 3 is bench/gpu."""
MOST = 600
"""Seconds of a step, of which the preparation has its own part."""


def cases_of(step: str) -> list[Case]:
    """The cases of a step, in their order."""
    return [one for one in all_cases() if one.step == step]
