"""PyTorch's memory in a slice:  torch_memory.py CASE …  prints its findings as JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch
from saying import pause, say

MIB = 1 << 20
STEP = 64 * MIB


def mem_get_info() -> dict[str, int]:
    """Free and total memory as programs see it."""
    free, total = torch.cuda.mem_get_info()
    return {"free": free, "total": total}


def fill(most: str) -> None:
    """Allocate in pieces until PyTorch's own error, or `most` bytes."""
    held: list[Any] = []
    error = ""
    while not error and len(held) * STEP < int(most):
        try:
            held.append(torch.empty(STEP, dtype=torch.uint8, device="cuda"))
        except torch.cuda.OutOfMemoryError as refused:
            error = type(refused).__name__
    say(held=len(held) * STEP, error=error, result="", **mem_get_info())
    pause()
    say(held=len(held) * STEP, error=error, result="", **mem_get_info())


def cycles(number: str, size: str) -> None:
    """Allocate so many bytes again and again, freed each time."""
    torch.empty(int(size), dtype=torch.uint8, device="cuda")
    torch.cuda.empty_cache()
    before = mem_get_info()["free"]
    for _ in range(int(number)):
        torch.empty(int(size), dtype=torch.uint8, device="cuda")
        torch.cuda.empty_cache()
    say(before=before, after=mem_get_info()["free"], result="")


def context() -> None:
    """What PyTorch takes beside its tensors, once cuBLAS and cuDNN have been used."""
    data = torch.ones(1024, 1024, device="cuda")
    layer = torch.nn.Conv2d(3, 64, 7, padding=3).cuda()
    (data @ data).sum().item()
    layer(torch.randn(8, 3, 128, 128, device="cuda")).sum().item()
    torch.cuda.synchronize()
    say(pid=os.getpid(), tensors=torch.cuda.memory_reserved())
    pause()
    say(pid=os.getpid())


def told() -> None:
    """Every place where PyTorch says how large the GPU is."""
    properties = torch.cuda.get_device_properties(0)
    say(
        properties=properties.total_memory,
        mem_get_info=mem_get_info()["total"],
        devices=torch.cuda.device_count(),
        result=[properties.name, properties.multi_processor_count],
    )


CASES: dict[str, Callable[..., None]] = {
    "fill": fill,
    "cycles": cycles,
    "context": context,
    "told": told,
    "version": lambda: say(version=f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}"),
}

if __name__ == "__main__":
    CASES[sys.argv[1]](*sys.argv[2:])
