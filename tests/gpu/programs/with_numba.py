"""A kernel of Numba in a slice; prints its findings as JSON."""

from __future__ import annotations

import numpy
from numba import cuda
from saying import say


@cuda.jit  # type: ignore[untyped-decorator]
def double(data: numpy.ndarray) -> None:
    """Doubles each element."""
    place = cuda.grid(1)
    if place < data.size:
        data[place] *= 2


def main() -> None:
    """On two streams."""
    found = []
    for _ in range(2):
        stream = cuda.stream()
        data = cuda.to_device(numpy.arange(1000), stream=stream)
        double[4, 256, stream](data)
        found.append(int(data.copy_to_host(stream=stream).sum()))
        stream.synchronize()
    say(result=found, total=int(cuda.current_context().get_memory_info().total))


main()
