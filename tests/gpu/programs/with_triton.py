"""A kernel of Triton in a slice. It looks for libcuda in a way of its own (TRITON_LIBCUDA_PATH)."""

import torch
import triton
import triton.language as tl
from saying import say


@triton.jit  # type: ignore[untyped-decorator]
def double(data, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """Each element twice."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    tl.store(data + place, tl.load(data + place, mask=inside) * 2, mask=inside)


def main() -> None:
    """Launches it, and asks which libcuda this process has mapped."""
    data = torch.ones(10_000, device="cuda")
    double[(triton.cdiv(10_000, 256),)](data, 10_000, BLOCK=256)
    with open("/proc/self/maps") as maps:
        libraries = {line.split()[-1] for line in maps if "libcuda.so" in line}
    right = bool((data == 2).all())
    say(right=right, libraries=sorted(libraries), total=torch.cuda.mem_get_info()[1])


main()
