"""Check Apptainer's configuration on a node: whether sessions get the driver's libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from portal.node.gpu import untrusted
from portal.node.gpu.checks import Finding

CONFIGURATIONS = (
    Path("/etc/apptainer"),
    Path("/usr/local/etc/apptainer"),
    Path("/opt/apptainer/etc/apptainer"),
)
LIBRARIES = {
    "libcuda.so": "no program finds a GPU",
    "libnvidia-ml.so": "nvidia-smi and programs that look at GPUs fail",
    "libnvidia-ptxjitcompiler.so": "code for newer or older GPUs is not compiled (CUDA error 221)",
    "libnvidia-nvvm.so": "link-time optimisation by the driver fails",
    "libnvidia-nvvm70.so": "link-time optimisation of CUDA 12 programs by the driver fails",
    "libnvidia-gpucomp.so": "the driver's compilers and graphics do not load",
    "libcudadebugger.so": "cuda-gdb cannot debug",
}
"""Libraries that the driver loads by name, and the effect of their absence in sessions."""


def check_apptainer(
    folders: Sequence[Path] = CONFIGURATIONS, cache: str | None = None
) -> Iterator[Finding]:
    """Compare Apptainer's list of libraries with the installed ones."""
    folder = next((path for path in folders if (path / "apptainer.conf").exists()), None)
    if folder is None:
        searched = ", ".join(map(str, folders))
        yield "note", f"Apptainer's configuration is in none of {searched}, so it was not checked"
        return
    text = _read(folder / "apptainer.conf")
    if re.search(r"^\s*use nvidia-container-cli\s*=\s*yes\b", text, re.MULTILINE):
        yield (
            "wrong",
            f"{folder}/apptainer.conf: with `use nvidia-container-cli = yes` the driver's "
            "libraries are not where sessions replace them by the shim, so no session with a "
            "share starts: set it to no",
        )
    listed = _read(folder / "nvliblist.conf").split("\n")
    names = {line.strip() for line in listed if line.strip() and not line.startswith("#")}
    if not names:
        yield "wrong", f"{folder}/nvliblist.conf names no libraries, so sessions get no driver"
        return
    cache = _installed() if cache is None else cache
    missing = [name for name in LIBRARIES if f"{name}." in cache and name not in names]
    for name in missing:
        yield (
            "wrong" if name == "libcuda.so" else "note",
            f"{folder}/nvliblist.conf lacks {name}, which is installed here: in sessions "
            f"{LIBRARIES[name]}. Add a line with it",
        )
    if not missing:
        yield "ok", f"{folder}/nvliblist.conf has the driver's libraries"


def _installed() -> str:
    """Return the dynamic linker's list of libraries."""
    try:
        return untrusted.run(["/sbin/ldconfig", "-p"], 20).stdout
    except untrusted.CommandError:
        return ""


def _read(file: Path) -> str:
    try:
        return untrusted.read(file)
    except OSError:
        return ""
