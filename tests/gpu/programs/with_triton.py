"""A Triton kernel in a slice. Triton has its own search for libcuda (TRITON_LIBCUDA_PATH)."""

import torch
import triton
import triton.language as tl
from saying import say


@triton.jit  # type: ignore[untyped-decorator]
def double(data, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """Doubles each element."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    tl.store(data + place, tl.load(data + place, mask=inside) * 2, mask=inside)


def main() -> None:
    """Launches the kernel, and checks which libcuda is mapped into this process."""
    data = torch.ones(10_000, device="cuda")
    double[(triton.cdiv(10_000, 256),)](data, 10_000, BLOCK=256)
    with open("/proc/self/maps") as maps:
        libraries = {line.split()[-1] for line in maps if "libcuda.so" in line}
    right = bool((data == 2).all())
    say(result=right, libraries=sorted(libraries), total=torch.cuda.mem_get_info()[1])


main()
