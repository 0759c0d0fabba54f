"""NVIDIA's cuda.core in a slice; prints its findings as JSON."""

from __future__ import annotations

import importlib
from typing import Any

from saying import say

CODE = 'extern "C" __global__ void nothing(int number) { }'


def core() -> Any:
    """Its module, which was called experimental at first."""
    found = importlib.import_module("cuda.core")
    return found if hasattr(found, "Device") else importlib.import_module("cuda.core.experimental")


def main() -> None:
    """Compile, launch, allocate."""
    module = core()
    device = module.Device()
    device.set_current()
    stream = device.create_stream()
    options = module.ProgramOptions(arch=f"sm_{device.arch}")
    program = module.Program(CODE, code_type="c++", options=options)
    kernel = program.compile("cubin").get_kernel("nothing")
    for number in range(100):
        config = module.LaunchConfig(grid=8, block=32)
        module.launch(stream, config, kernel, number)
    buffer = device.memory_resource.allocate(1 << 20, stream=stream)
    size = buffer.size
    buffer.close(stream)
    stream.sync()
    say(result=[device.name, size])


main()
