"""PyTorch's work in a slice:  torch_work.py CASE …  prints its findings as JSON."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from saying import pause, say

REPLAYS = 1000
Step = Callable[[], None]
"""Some work, of which the rate is measured."""


def graphs() -> None:
    """A graph with its own memory, many times; then too much memory in one."""
    data = torch.ones(1024, 1024, device="cuda")
    data @ data  # cuBLAS makes its handle now: it cannot while a graph is captured
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = (data @ data) + 1
    for _ in range(REPLAYS):
        graph.replay()
    torch.cuda.synchronize()
    right = bool((result == 1025).all())
    refused = False
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            size = 2 * torch.cuda.mem_get_info()[1]
            torch.empty(size, dtype=torch.uint8, device="cuda")
    except (torch.cuda.OutOfMemoryError, RuntimeError):
        refused = True
    say(result={"right": right, "refused": refused})


def crash() -> None:
    """An index out of range on the GPU, which ends the context."""
    data = torch.zeros(8, device="cuda")
    try:
        print(data[torch.full((8,), 10_000_000, device="cuda")].sum().item())
    except RuntimeError as error:
        say(result=type(error).__name__)


def survive() -> None:
    """Computes until the suite continues, with the right result at the end."""
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


def train() -> Step:
    """A training step."""
    model = residual(64)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(32, 3, 128, 128, device="cuda")
    labels = torch.randint(0, 1000, (32,), device="cuda")

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimiser.step()

    return step


def small() -> Step:
    """1000 very small kernels, as fast as Python launches them."""
    data = torch.zeros(64, device="cuda")

    def step() -> None:
        for _ in range(1000):
            data.add_(1)

    return step


def lengths() -> Step:
    """Sixteen sequences of ever new lengths through an attention layer."""
    layer = torch.nn.TransformerEncoderLayer(256, 4, batch_first=True).cuda().eval()
    data = torch.randn(4, 1024, 256, device="cuda")
    seen = itertools.count()

    def step() -> None:
        with torch.no_grad():
            for _ in range(16):
                layer(data[:, next(seen) * 37 % 1000 :])

    return step


STEPS: dict[str, Callable[[], Step]] = {"train": train, "small": small, "lengths": lengths}


def rate(step: Step, seconds: float) -> float:
    """Steps per second."""
    began, done = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        step()
        done += 1
        if done % 4 == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return done / (time.monotonic() - began)


def rates(seconds: str, *names: str) -> None:
    """Several kinds of work, one after the other."""
    found = {}
    for name in names:
        step = STEPS[name]()
        rate(step, 1)
        found[name] = rate(step, float(seconds))
    say(**found)


def busy(seconds: str, warm: str, name: str) -> None:
    """One kind of work beside others; the first `warm` seconds do not count."""
    step = STEPS[name]()
    step()
    torch.cuda.synchronize()
    say(ready=True)
    pause()
    rate(step, float(warm))
    say(rate=rate(step, float(seconds)))


CASES: dict[str, Callable[..., None]] = {
    "graphs": graphs,
    "crash": crash,
    "survive": survive,
    "rates": rates,
    "busy": busy,
}

if __name__ == "__main__":
    CASES[sys.argv[1]](*sys.argv[2:])
