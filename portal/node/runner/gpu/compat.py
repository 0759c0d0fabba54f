"""Newer drivers in images, for machines with an older one (CUDA's forward compatibility).

They cannot be used with a part of a GPU, since only the node's driver is shared. Programs then
report an insufficient driver, which needs an explanation.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NODE = "/proc/driver/nvidia/version"
_FILE = re.compile(r"libcuda\.so\.(\d+\.\d[\d.]*)$")
_MODULE = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+\.\d[\d.]*)")


def notice(covered: Iterable[str], node: str = NODE) -> str | None:
    """Return a notice about the image's libraries that ours replace, or None."""
    node_version = _node_version(node)
    in_compat = [path for path in covered if os.path.basename(os.path.dirname(path)) == "compat"]
    newer = [path for path in in_compat if _numbers(_version(path)) > _numbers(node_version)]
    if not newer:
        return None
    driver = f"this node's driver ({node_version})" if node_version else "this node's driver"
    return (
        f"The image brings a driver of its own, {newer[-1]}. It is not used with a part of a GPU, "
        f"only {driver} is. If programs say that the CUDA driver version is insufficient for the "
        "CUDA runtime version, choose an image for an older CUDA, or request whole GPUs."
    )


def _version(path: str) -> str:
    match = _FILE.search(path)
    return match[1] if match else ""


def _node_version(file: str) -> str:
    try:
        with open(file, encoding="ascii", errors="replace") as text:
            match = _MODULE.search(text.readline())
    except OSError:
        return ""
    return match[1] if match else ""


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part]
