"""Features of PyTorch that use the driver in ways of their own:  torch_features.py CASE

Each prints JSON whose `result` must be the same with the shim and without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from saying import say
from torch.nn import functional

SEED = 7


def streams() -> None:
    """A loader that copies the next batch on a side stream while the last one is worked on."""
    torch.manual_seed(SEED)
    batches = [torch.randint(0, 9, (512, 512)).float().pin_memory() for _ in range(40)]
    side, total = torch.cuda.Stream(), torch.zeros((), device="cuda", dtype=torch.float64)
    following = batches[0].to("cuda", non_blocking=True)
    for number in range(len(batches)):
        torch.cuda.current_stream().wait_stream(side)
        batch = following
        batch.record_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            if number + 1 < len(batches):
                following = batches[number + 1].to("cuda", non_blocking=True)
        total += (batch * 2 + 1).double().sum()
    expected = sum(float((batch * 2 + 1).double().sum()) for batch in batches)
    say(result={"right": total.item() == expected})


class Numbers(torch.utils.data.Dataset):  # type: ignore[misc]
    """Made on the GPU by the workers."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, number: int) -> Any:
        return torch.full((1000,), float(number), device="cuda").sum().cpu()


def workers() -> None:
    """A DataLoader whose two workers use the GPU themselves."""
    loader = torch.utils.data.DataLoader(
        Numbers(), batch_size=8, num_workers=2, multiprocessing_context="spawn"
    )
    say(result=float(sum(batch.sum().item() for batch in loader)))


def compiled() -> None:
    """torch.compile with CUDA graphs (mode reduce-overhead)."""
    torch.manual_seed(SEED)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 8))
    model = model.cuda().eval()
    data = torch.randn(32, 64, device="cuda")
    fast = torch.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        wanted = model(data)
        for _ in range(5):
            found = fast(data).clone()
    say(result={"right": torch.allclose(wanted, found, atol=1e-2)})


def attention() -> None:
    """Scaled dot-product attention in half precision, forward and backward."""
    torch.manual_seed(SEED)
    shape = (2, 8, 512, 64)
    parts = [
        torch.randn(shape, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3)
    ]
    found = functional.scaled_dot_product_attention(*parts, is_causal=True)
    found.float().square().sum().backward()
    kinds = [tuple(one.grad.shape) == shape and bool(one.grad.isfinite().all()) for one in parts]
    full = [one.detach().double() for one in parts]
    wanted = functional.scaled_dot_product_attention(*full, is_causal=True)
    say(result={"gradients": kinds, "right": torch.allclose(found.double(), wanted, atol=1e-2)})


def profiler() -> None:
    """The profiler (CUPTI), which sees the same kernels."""
    data = torch.ones(512, 512, device="cuda")
    data @ data
    torch.cuda.synchronize()
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        for _ in range(10):
            (data @ data).relu_()
        torch.cuda.synchronize()
    cuda = torch.autograd.DeviceType.CUDA
    names = [event.name for event in profile.events() if event.device_type == cuda]
    say(result={"kernels": sum("Mem" not in name for name in names) >= 20})


CASES: dict[str, Callable[[], None]] = {
    "streams": streams,
    "workers": workers,
    "compiled": compiled,
    "attention": attention,
    "profiler": profiler,
}

if __name__ == "__main__":  # also since workers import this file
    CASES[sys.argv[1]]()
