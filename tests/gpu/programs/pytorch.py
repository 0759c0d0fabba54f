"""PyTorch in a slice:  pytorch.py CASE …  prints its findings as JSON."""

from __future__ import annotations

import sys
import time
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


def fill() -> None:
    """Allocate everything in pieces of 64 MiB; the failure must be PyTorch's own error."""
    held: list[Any] = []
    error = ""
    while not error:
        try:
            held.append(torch.empty(STEP, dtype=torch.uint8, device="cuda"))
        except torch.cuda.OutOfMemoryError as refused:
            error = type(refused).__name__
    say(held=len(held) * STEP, error=error, **mem_get_info())
    pause()
    say(held=len(held) * STEP, error=error)


def graphs() -> None:
    """A graph with its own memory, many times; then too much memory in one."""
    data = torch.ones(1024, 1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = (data @ data) + 1
    for _ in range(1000):
        graph.replay()
    torch.cuda.synchronize()
    right = bool((result == 1025).all())
    refused = False
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.empty(2 * mem_get_info()["total"], dtype=torch.uint8, device="cuda")
    except (torch.cuda.OutOfMemoryError, RuntimeError):
        refused = True
    say(right=right, refused=refused)


def cycles() -> None:
    """Allocate 80 % of the slice a thousand times, freed each time."""
    size = int(mem_get_info()["total"] * 0.8)
    torch.empty(size, dtype=torch.uint8, device="cuda")
    torch.cuda.empty_cache()
    before = mem_get_info()["free"]
    for _ in range(1000):
        torch.empty(size, dtype=torch.uint8, device="cuda")
        torch.cuda.empty_cache()
    say(before=before, after=mem_get_info()["free"])


def crash() -> None:
    """An index out of range on the GPU, which ends the context."""
    data = torch.zeros(8, device="cuda")
    try:
        print(data[torch.full((8,), 10_000_000, device="cuda")].sum().item())
    except RuntimeError as error:
        say(crashed=type(error).__name__)


def survive() -> None:
    """Computes until the test continues, with the right result at the end."""
    data = torch.ones(2048, 2048, device="cuda")
    say(ready=bool((data @ data == 2048).all()))
    pause()
    say(right=bool((data @ data == 2048).all()))


def residual(width: int) -> Any:
    """A network with the shapes of a small ResNet's middle."""

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            layers = []
            for _ in range(2):
                layers += [torch.nn.Conv2d(width, width, 3, padding=1, bias=False)]
                layers += [torch.nn.BatchNorm2d(width), torch.nn.ReLU()]
            self.layers = torch.nn.Sequential(*layers)

        def forward(self, data: Any) -> Any:
            return data + self.layers(data)

    blocks = [Block() for _ in range(8)]
    head = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(width, 1000)]
    stem = [torch.nn.Conv2d(3, width, 7, stride=2, padding=3)]
    return torch.nn.Sequential(*stem, *blocks, *head).cuda()


def train(seconds: str) -> None:
    """Training steps per second."""
    model = residual(64)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(32, 3, 128, 128, device="cuda")
    labels = torch.randint(0, 1000, (32,), device="cuda")

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimiser.step()

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    say(ready=True)
    pause()
    began, done = time.monotonic(), 0
    while time.monotonic() - began < float(seconds):
        step()
        done += 1
        if done % 4 == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    say(rate=done / (time.monotonic() - began))


def small(number: str) -> None:
    """Very small kernels, as fast as Python launches them."""
    data = torch.zeros(64, device="cuda")
    for _ in range(100):
        data.add_(1)
    torch.cuda.synchronize()
    began = time.monotonic()
    for _ in range(int(number)):
        data.add_(1)
    torch.cuda.synchronize()
    say(rate=int(number) / (time.monotonic() - began))


CASES: dict[str, Callable[..., None]] = {
    "fill": fill,
    "graphs": graphs,
    "cycles": cycles,
    "crash": crash,
    "survive": survive,
    "train": train,
    "small": small,
    "memory": lambda: say(**mem_get_info()),
    "version": lambda: say(version=f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}"),
}

if __name__ == "__main__":
    CASES[sys.argv[1]](*sys.argv[2:])
