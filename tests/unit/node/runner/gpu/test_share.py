"""The share of a GPU: read, our libraries mounted by the real kernel, and checked."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from portal.node.runner.gpu import check, compat, mps, share
from portal.node.runner.gpu.share import drivers, environment, read_slice
from portal.node.runner.mounts.namespace import NotGranted
from portal.node.runner.usage import read_gpu_usage
from tests.support.paths import ROOT

UUID = "GPU-6ab0dd8a-3f57-4b6c-9d4f-0d2f5a1c7e11"
HALF = 2048 << 20
SLICE = f"version=1\ncompute=limiter\ngpu={UUID}\nmemory={HALF}\nsm=25\n"

# Returns what a test specifies, under the names of NVML.
NVML = """\
#include <string.h>
struct memory { unsigned long long total, free, used; };
int nvmlInit_v2(void) { return INIT; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = COUNT; return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    *device = (void *)uuid;
    return strcmp(uuid, OURS) ? 6 : 0;
}
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    (void)device;
    memory->total = TOTAL;
    return 0;
}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """What root has written, as the job's script shows it."""
    folder = tmp_path / "slipway-gpu"
    (folder / "driver").mkdir(parents=True)
    (folder / "slice").write_text(SLICE)
    return folder


def test_the_granted_slice(place: Path) -> None:
    granted = read_slice(str(place))
    assert granted.compute == "limiter"
    assert [(share.gpu, share.memory, share.sm) for share in granted.shares] == [(UUID, HALF, 25)]


@pytest.mark.parametrize(
    "text", ["", "version=1\n", f"gpu={UUID}\nmemory=much\n", "memory=1\n", "gpu\n"]
)
def test_without_a_slice_there_is_no_session(place: Path, text: str) -> None:
    (place / "slice").write_text(text)
    with pytest.raises(NotGranted, match="share of"):
        read_slice(str(place))
    (place / "slice").unlink()
    with pytest.raises(NotGranted, match=r"share of .* Tell the administrators\."):
        read_slice(str(place))


def test_only_the_drivers_names_in_an_image_are_found(tmp_path: Path) -> None:
    compat = tmp_path / "compat"
    compat.mkdir()
    for name in ("libcuda.so.595.45", "libcudart.so.12", "libcudadebugger.so.1", "libcuda.so.2"):
        (compat / name).write_text(name)
    (compat / "libcuda.so.1").symlink_to("libcuda.so.595.45")
    (compat / "libcuda.so").symlink_to("libcuda.so.1")
    (compat / "libcuda.so.3").symlink_to("nowhere")
    found = drivers("libcuda.so.1", [str(compat), str(tmp_path / "missing")])
    assert found == {str(compat / "libcuda.so.595.45"), str(compat / "libcuda.so.2")}


# The real kernel

MOUNT = """\
import os, sys
from portal.node.runner.gpu import share
from portal.node.runner.mounts.namespace import Namespace, NotGranted
place, driver, toolkit, *images = sys.argv[1:]
share._image_folders = lambda: iter(images)
share._check = lambda granted, driver: None
try:
    share.prepare(Namespace(), toolkit, place, driver)
except NotGranted as error:
    sys.exit(f"refused: {error}")
for path in (place + "/driver", driver, *images):
    for name in share.SHIMS if os.listdir(path) else ():
        print(open(f"{path}/{name}").read())
"""


class Container:
    """A driver, a toolkit and an image with its own driver, in folders of a test."""

    def __init__(self, root: Path, place: Path) -> None:
        self.place = place
        self.folders = {name: root / name for name in ("libs", "toolkit/gpu", "compat")}
        for name, folder in self.folders.items():
            folder.mkdir(parents=True)
            for library in share.SHIMS:
                (folder / library).write_text(f"{name}/{library}")
        self.toolkit = root / "toolkit"

    def run(self) -> subprocess.CompletedProcess[str]:
        folders = [self.place, self.folders["libs"], self.toolkit, self.folders["compat"]]
        return subprocess.run(
            [sys.executable, "-c", MOUNT, *map(str, folders)],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )


@pytest.fixture
def container(tmp_path: Path, place: Path) -> Container:
    return Container(tmp_path, place)


def test_our_libraries_are_mounted_and_find_the_drivers(container: Container, place: Path) -> None:
    done = container.run()
    ours = [f"toolkit/gpu/{name}" for name in share.SHIMS]
    assert done.stdout.split() == [f"libs/{name}" for name in share.SHIMS] + ours + ours, (
        done.stderr
    )
    # Outside the container nothing of it is visible.
    assert not list((place / "driver").iterdir())
    assert (container.folders["libs"] / share.SHIMS[0]).read_text() == f"libs/{share.SHIMS[0]}"


def test_a_whole_gpu_has_the_unchanged_driver(container: Container, place: Path) -> None:
    (place / "slice").write_text(SLICE.replace(f"memory={HALF}", "memory=0"))
    done = container.run()
    theirs = [f"{place}/{name}" for place in ("libs", "compat") for name in share.SHIMS]
    assert done.stdout.split() == theirs, done.stderr


@pytest.mark.parametrize(
    ("missing", "words"),
    [("libs", "this node has no NVIDIA driver"), ("toolkit/gpu", "Slipway's own libcuda.so.1")],
)
def test_missing_files_end_the_session(container: Container, missing: str, words: str) -> None:
    (container.folders[missing] / "libcuda.so.1").unlink()
    done = container.run()
    assert done.returncode == 1
    assert done.stderr.startswith(f"refused: {words}")


def test_a_node_that_forbids_mounts(container: Container, place: Path) -> None:
    (place / "driver").rmdir()
    done = container.run()
    assert "refused: this node does not let the GPU be shared" in done.stderr


# The check


def nvml(folder: Path, total: int = HALF, count: int = 1, init: int = 0) -> str:
    """Build a library that responds as NVML would."""
    source, library = folder / "nvml.c", folder / "libnvidia-ml.so.1"
    source.write_text(NVML)
    values = {"TOTAL": f"{total}ULL", "COUNT": count, "INIT": init, "OURS": f'"{UUID}"'}
    argv = ["gcc", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run([*argv, *(f"-D{key}={value}" for key, value in values.items())], check=True)
    return str(library)


def test_the_check_passes_where_nvml_shows_the_slice(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = nvml(tmp_path, total=HALF - (1 << 20))
    assert check.main([library, f"{UUID}={HALF}"]) == 0
    assert check.main([library, f"{UUID}=0"]) == 0
    assert capsys.readouterr().out == ""
    share._check(read_slice(str(place)), str(tmp_path))


@pytest.mark.parametrize(
    ("changes", "share", "words"),
    [
        ({"total": HALF * 4}, f"{UUID}={HALF}", "shows 8192 MiB of memory instead of 2048 MiB"),
        ({"count": 2}, f"{UUID}={HALF}", "it shows 2 GPUs instead of 1"),
        ({"init": 9}, f"{UUID}={HALF}", "the driver answered nvmlInit with error 9"),
        ({}, f"GPU-other={HALF}", "answered nvmlDeviceGetHandleByUUID with error 6"),
    ],
)
def test_the_check_fails_with_an_explanation(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, int],
    share: str,
    words: str,
) -> None:
    assert check.main([nvml(tmp_path, **changes), share]) == 1
    assert words in capsys.readouterr().out


def test_a_library_that_cannot_be_loaded_ends_the_session(tmp_path: Path, place: Path) -> None:
    granted = read_slice(str(place))
    with pytest.raises(NotGranted, match=r"its GPU is not as it was granted: .*libnvidia-ml"):
        share._check(granted, str(tmp_path))


# Environment of the apps, and reports to the portal


def test_programs_find_the_gpu(place: Path) -> None:
    granted = read_slice(str(place))
    found = environment(granted, {"A": "b"}, {"LD_LIBRARY_PATH": "/opt/lib", "HOME": "/root"})
    libs = "/.singularity.d/libs"
    assert found == {
        "A": "b",
        "TRITON_LIBCUDA_PATH": libs,
        "LD_LIBRARY_PATH": f"/opt/lib:{libs}",
    }
    wanted = {"LD_LIBRARY_PATH": "/mine::", "TRITON_LIBCUDA_PATH": "/mine"}
    found = environment(granted, wanted, {"LD_LIBRARY_PATH": libs})
    assert found == {"LD_LIBRARY_PATH": f"/mine:{libs}", "TRITON_LIBCUDA_PATH": "/mine"}


def test_mps_gets_the_share(place: Path) -> None:
    (place / "slice").write_text(SLICE.replace("limiter", "mps"))
    found = environment(read_slice(str(place)), {}, {})
    assert found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "25"
    assert found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=2048M"


def test_without_the_mps_daemon_there_is_no_session(container: Container, place: Path) -> None:
    (place / "slice").write_text(SLICE.replace("limiter", "mps"))
    assert "refused: this node's MPS, which shares its GPU out" in container.run().stderr


# MPS

JOIN = """\
import os, sys
from portal.node.runner.gpu import mps
from portal.node.runner.mounts.namespace import Namespace, NotGranted
try:
    mps.check_daemon(sys.argv[1])
    mps.join(Namespace(), *sys.argv[1:])
except NotGranted as error:
    sys.exit(f"refused: {error}")
print(open(f"{sys.argv[2]}/cuda.shm").read(), end="")
open(f"{sys.argv[2]}/ours", "w").close()
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Path:
    """The folder of a node's MPS daemon."""
    folder = tmp_path / "mps"
    (folder / "shm").mkdir(parents=True)
    (folder / "control").touch()
    (folder / "shm" / "cuda.shm").write_text("of the server")
    return folder


def join(daemon: Path, memory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", JOIN, str(daemon), str(memory)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_a_client_of_mps_has_the_daemons_shared_memory(daemon: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    done = join(daemon, memory)
    assert (done.returncode, done.stdout) == (0, "of the server"), done.stderr
    assert (daemon / "shm" / "ours").exists()
    assert list(memory.iterdir()) == []  # outside of the session nothing has changed


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("control", "this node's MPS, which shares its GPU out, does not run"),
        ("shm", "this node's MPS has no shared memory for its sessions"),
    ],
)
def test_an_incomplete_daemon_ends_the_session(
    daemon: Path, tmp_path: Path, missing: str, words: str
) -> None:
    (daemon / missing).rename(tmp_path / "elsewhere")
    assert join(daemon, tmp_path).stderr.startswith(f"refused: {words}")


def test_a_node_that_forbids_joining(daemon: Path, tmp_path: Path) -> None:
    assert "does not let the session join its MPS" in join(daemon, tmp_path / "missing").stderr


def test_a_size_of_shared_memory_cannot_be_had_with_mps(
    capfd: pytest.CaptureFixture[str],
) -> None:
    mps.common_memory(512, must=False)
    assert "not of 512 MB; files in it are seen by users of the same kind" in capfd.readouterr().out
    with pytest.raises(NotGranted, match="by MPS has /dev/shm in common with the others"):
        mps.common_memory(512, must=True)


# A newer driver in the image

KERNEL = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Mon Jan  1 00:00:00 UTC 2024\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (builder)\n"
COMPAT = "/usr/local/cuda-12.9/compat/libcuda.so.575.57.08"


@pytest.mark.parametrize("form", [KERNEL, OPEN])
@pytest.mark.parametrize(
    ("node", "told"),
    [("535.261.03", True), ("575.57.07", True), ("575.57.08", False), ("580.65.06", False)],
)
def test_a_newer_driver_in_the_image_is_explained(
    form: str, node: str, told: bool, tmp_path: Path
) -> None:
    version = tmp_path / "version"
    version.write_text(form.format(node))
    text = compat.notice(["/usr/lib/libcuda.so.1", COMPAT], str(version))
    assert (text is not None) == told
    if text:
        assert COMPAT in text
        assert f"this node's driver ({node})" in text
        assert "driver version is insufficient" in text


def test_without_the_drivers_version_the_image_is_told_too(tmp_path: Path) -> None:
    text = compat.notice([COMPAT], str(tmp_path / "missing"))
    assert text and "only this node's driver is" in text
    (tmp_path / "odd").write_text("nothing")
    assert compat.notice([COMPAT], str(tmp_path / "odd")) == text
    assert compat.notice(["/usr/lib/x86_64-linux-gnu/libcuda.so.570.1"], "missing") is None


def test_the_notice_is_in_the_jobs_log(container: Container) -> None:
    library = container.folders["compat"] / "libcuda.so.999.1"
    library.write_text("newer")
    (container.folders["compat"] / "libcuda.so.1").unlink()
    (container.folders["compat"] / "libcuda.so.1").symlink_to(library.name)
    assert f"The image brings a driver of its own, {library}" in container.run().stdout


def test_usage_is_the_watchdogs_recent_report(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    unknown = {"gpu_memory_bytes": None, "gpu_percent": None, "gpu_kills": None}
    assert read_gpu_usage(str(path)) == unknown
    text = '{"time": %f, "memory": 1048576, "sm_percent": 12.5, "processes": 1, "kills": 2}'
    path.write_text(text % time.time())
    known = {"gpu_memory_bytes": 1048576, "gpu_percent": 12.5, "gpu_kills": 2}
    assert read_gpu_usage(str(path)) == known
    path.write_text((text % time.time()).replace("12.5", "null"))
    assert read_gpu_usage(str(path)) == known | {"gpu_percent": None}
    path.write_text(text % (time.time() - 31))
    assert read_gpu_usage(str(path)) == unknown | {"gpu_kills": 2}
    path.write_text('{"time": 0}')
    assert read_gpu_usage(str(path)) == unknown
