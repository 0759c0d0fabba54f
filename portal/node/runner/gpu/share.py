"""The session's share of a GPU: our libraries replace the driver's, and are checked before use.

Root's helper on the node has written the job's slice (gres/shim/slice.h); the job's script mounts
that folder at MOUNT. The driver's own libraries are mounted at MOUNT/driver, where ours find them,
and ours are mounted over them, so that programs always find ours, however they look for the driver.
"""

from __future__ import annotations

import glob
import os
import subprocess
import sys

from ..log import say
from ..mounts.namespace import NotGranted
from . import compat, mps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..mounts.namespace import Namespace

MOUNT = "/opt/slipway-gpu"
DRIVER = "/.singularity.d/libs"
"""Where Apptainer's --nv mounts the node's driver."""
SHIMS = ("libcuda.so.1", "libnvidia-ml.so.1")
# A driver in the image itself, for machines without one, would bypass ours.
IMAGE_FOLDERS = (
    "/lib*",
    "/lib/*-linux-*",
    "/usr/lib*",
    "/usr/lib/*-linux-*",
    "/usr/local/lib*",
    "/usr/local/cuda*/compat",
    "/usr/local/cuda*/lib*",
    "/usr/local/nvidia/lib*",
)
CHECK_SECONDS = 60.0  # an idle driver may take long to initialise
MIB = 1 << 20
TELL = "Tell the administrators."


class Share:
    """The granted share of one GPU: bytes of memory (0 for all) and percent."""

    __slots__ = ("gpu", "memory", "sm")

    def __init__(self, gpu: str, memory: int, sm: int) -> None:
        self.gpu = gpu
        self.memory = memory
        self.sm = sm


class Slice:
    """All GPU shares of the session; `compute`: the mechanism that limits multiprocessors."""

    __slots__ = ("compute", "shares")

    def __init__(self, compute: str, shares: tuple[Share, ...]) -> None:
        self.compute = compute
        self.shares = shares


def read_slice(folder: str = MOUNT) -> Slice:
    """Read the slice that root has written; raise NotGranted if there is none."""
    compute, shares = "limiter", []
    try:
        with open(f"{folder}/slice", encoding="ascii") as file:
            pairs = [line.strip().split("=", 1) for line in file if line.strip()]
        for key, value in pairs:
            if key == "compute":
                compute = value
            elif key == "gpu":
                shares.append(Share(value, 0, 100))
            elif key == "memory":
                shares[-1].memory = int(value)
            elif key == "sm":
                shares[-1].sm = int(value)
    except (OSError, ValueError, IndexError) as error:
        raise NotGranted(f"its share of a GPU cannot be read ({error}). {TELL}") from None
    if not shares:
        raise NotGranted(f"this node gave the session no share of its GPU. {TELL}")
    return Slice(compute, tuple(shares))


def prepare(namespace: Namespace, toolkit: str, folder: str = MOUNT, driver: str = DRIVER) -> Slice:
    """Mount our libraries if a GPU is shared, and check them; raise NotGranted.

    Must be called while the process has one thread.
    """
    granted = read_slice(folder)
    if granted.compute == "mps":
        mps.check_daemon(mps.MOUNT)
    for name in SHIMS:
        if not os.path.exists(f"{driver}/{name}"):
            raise NotGranted(f"this node has no NVIDIA driver to share ({name} is missing). {TELL}")
    # Slurm constrains whole GPUs: their sessions use the driver unchanged.
    if any(share.memory for share in granted.shares):
        _mount_libraries(namespace, toolkit, folder, driver)
    if granted.compute == "mps":
        mps.join(namespace, mps.MOUNT, mps.MEMORY)
    _check(granted, driver)
    return granted


def _mount_libraries(namespace: Namespace, toolkit: str, folder: str, driver: str) -> None:
    for name in SHIMS:
        if not os.path.exists(f"{toolkit}/gpu/{name}"):
            raise NotGranted(f"Slipway's own {name} is missing. {TELL}")
    try:
        # Before ours cover them; a copy of the mounts, which later mounts do not affect.
        namespace.bind(driver, f"{folder}/driver")
        covered = {name: sorted(drivers(name, [driver, *_image_folders()])) for name in SHIMS}
        for name in SHIMS:
            for path in covered[name]:
                namespace.bind(f"{toolkit}/gpu/{name}", path)
    except OSError as error:
        raise NotGranted(f"this node does not let the GPU be shared: {error}. {TELL}") from None
    text = compat.notice(covered[SHIMS[0]])
    if text:
        say(text)


def drivers(name: str, folders: Iterable[str]) -> set[str]:
    """Return the real paths of a driver library in some folders."""
    stem = name.rpartition(".")[0]  # libcuda.so, libcuda.so.1, libcuda.so.595.45: the same library
    paths = (path for folder in folders for path in glob.glob(f"{glob.escape(folder)}/{stem}*"))
    return {real for real in map(os.path.realpath, paths) if os.path.isfile(real)}


def _image_folders() -> Iterator[str]:
    for pattern in IMAGE_FOLDERS:
        yield from glob.glob(pattern)
    yield from filter(os.path.isabs, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    for path in glob.glob("/etc/ld.so.conf.d/*.conf"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                yield from (line.strip() for line in file if line.startswith("/"))
        except OSError:
            continue


def _check(granted: Slice, driver: str) -> None:
    """Query the library as programs will, in a separate process, since a driver may crash."""
    expected = [f"{share.gpu}={share.memory}" for share in granted.shares]
    program = os.path.join(os.path.dirname(__file__), "check.py")
    argv = [sys.executable, "-IS", program, f"{driver}/{SHIMS[1]}", *expected]
    try:
        process = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=CHECK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NotGranted(f"its GPU could not be checked: {error}. {TELL}") from None
    if process.returncode != 0:
        lines = process.stdout.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit code {process.returncode}"
        raise NotGranted(f"its GPU is not as it was granted: {reason}. {TELL}")


def environment(
    granted: Slice, app_variables: Mapping[str, str], base: Mapping[str, str], driver: str = DRIVER
) -> dict[str, str]:
    """Return the apps' own variables, with those that programs need to find the GPU."""
    paths = app_variables.get("LD_LIBRARY_PATH", base.get("LD_LIBRARY_PATH", "")).split(":")
    folders = [path for path in paths if path]
    if driver not in folders:
        folders.append(driver)
    # Triton asks ldconfig, which does not know the libraries that --nv mounts.
    variables = {
        "TRITON_LIBCUDA_PATH": driver,
        **app_variables,
        "LD_LIBRARY_PATH": ":".join(folders),
    }
    return variables | (_mps(granted) if granted.compute == "mps" else {})


def _mps(granted: Slice) -> dict[str, str]:
    limits = (
        f"{index}={share.memory // MIB}M"
        for index, share in enumerate(granted.shares)
        if share.memory
    )
    return {
        "CUDA_MPS_PIPE_DIRECTORY": mps.MOUNT,
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(min(share.sm for share in granted.shares)),
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": ",".join(limits),
    }
