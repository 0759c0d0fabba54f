"""A job's slice: derived from Slurm's allocation, and stored in a folder while the job runs.

JOBS/<job id>/slice       the job's limits (gres/shim/slice.h has the format)
JOBS/<job id>/counters    the shim's, owned by the job's user: a link into room/
JOBS/<job id>/room/       a tmpfs of the counters' size (memory.py), all that users can fill
JOBS/<job id>/driver/     the session mounts the real driver's libraries here
JOBS/<job id>/limits      only where the driver itself can limit a cgroup (limits.py)
JOBS/<job id>/refused     instead of a slice: the reason
JOBS/<job id>/usage.json  the watchdog's (watch.py)
JOBS/<job id>/load        the watchdog's, for the shim (neighbours.py)
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from portal.node.common.fgpu import MIB, GpuKind, percent_of, share_of
from portal.node.common.gres import Gres
from portal.node.gpu import memory, untrusted
from portal.node.gpu.nvml import Device

JOBS = Path("/run/slipway/gpu/jobs")
COUNTERS_SIZE = 1 << 20
LIKENESS = 0.9
"""A GPU can be of a kind if its memory and that in the settings differ by this factor at most."""


class Refused(Exception):
    """No slice can be created for this job; the text says why."""


@dataclass(frozen=True)
class Part:
    """One GPU of a job."""

    uuid: str
    memory: int
    """Bytes; 0 is the whole GPU."""
    sm_percent: int


@dataclass(frozen=True)
class JobSlice:
    """The GPUs, memory and compute shares that a job may use."""

    compute: str
    parts: tuple[Part, ...]
    policy: str = "strict"
    """`fair` if it may use its neighbours' idle shares, which the watchdog decides."""

    def text(self) -> str:
        """The text that the shim reads."""
        lines = ["version=1", f"compute={self.compute}"]
        lines += [f"policy={self.policy}"] if self.policy != "strict" else []
        for part in self.parts:
            lines += [f"gpu={part.uuid}", f"memory={part.memory}", f"sm={part.sm_percent}"]
        return "\n".join(lines) + "\n"


def parse_slice(text: str) -> JobSlice:
    """Parse the output of `JobSlice.text`; raises ValueError."""
    words = [line.split("=", 1) for line in untrusted.lines(text)]
    if any(len(word) != 2 for word in words) or words[:1] != [["version", "1"]]:
        raise ValueError("not a slice")
    policy = dict(words).get("policy", "strict")
    values = [value for name, value in words if name != "policy"]
    parts = zip(values[2::3], values[3::3], values[4::3])
    return JobSlice(
        values[1], tuple(Part(gpu, int(memory), int(sm)) for gpu, memory, sm in parts), policy
    )


def decide(
    gres: Sequence[Gres],
    numbers: Sequence[int],
    devices: Sequence[Device],
    kinds: Sequence[GpuKind],
    context: int,
) -> JobSlice:
    """Return the slice of a job with these `gres`; `numbers` are those of SLURM_JOB_GPUS."""
    entries = _gpu_gres(gres)
    if any(number >= len(devices) for number in numbers):
        raise Refused(f"Slurm gave GPU {max(numbers)}, but the driver shows {len(devices)} only")
    gpus = [devices[number] for number in numbers]
    if only_whole(gres):
        if sum(entry.count for entry in entries) != len(gpus):
            raise Refused(
                f"Slurm gave {sum(entry.count for entry in entries)} GPUs and named {len(gpus)}"
            )
        return JobSlice("none", tuple(Part(device.uuid, 0, 100) for device in gpus))
    if [entry.name for entry in entries] != ["shard"]:
        names = ", ".join(entry.name for entry in entries) or "no GPU"
        raise Refused(f"shards of one kind, or whole GPUs, can be fenced; this job holds {names}")
    return _shares(entries[0], gpus, kinds, context)


def only_whole(gres: Sequence[Gres]) -> bool:
    """Whether a job holds whole GPUs and no shards."""
    return {entry.name for entry in _gpu_gres(gres)} == {"gpu"}


def _gpu_gres(gres: Sequence[Gres]) -> list[Gres]:
    return [entry for entry in gres if entry.name in ("gpu", "shard") and entry.count]


def _shares(
    shard: Gres, gpus: Sequence[Device], kinds: Sequence[GpuKind], context: int
) -> JobSlice:
    if sum(count for count, _ in shard.shares) != shard.count or len(shard.shares) != len(gpus):
        raise Refused(f"Slurm's shares {shard.shares} do not fit {len(gpus)} GPUs")
    parts, modes = [], set()
    for device, (count, total) in zip(gpus, shard.shares):
        kind = kind_of(device, total, shard.type, kinds, context)
        # Never more than the GPU can give, even if the settings say so: all slices must fit.
        usable = min(divisible(device, kind, context), kind.memory_mb * MIB)
        parts.append(Part(device.uuid, share_of(usable, count, total), percent_of(count, total)))
        modes.add((kind.compute, kind.policy))
    if len(modes) > 1:
        raise Refused("its GPUs are of kinds with different settings for `compute` or `policy`")
    compute, policy = modes.pop()
    return JobSlice(compute, tuple(parts), policy)


def divisible(device: Device, kind: GpuKind, context: int) -> int:
    """Bytes for all slices together, without the driver's reserve and the sessions' contexts.

    With so many sessions that their contexts alone would take more than a quarter of the GPU, not
    all of them can fill their slices at the same time.
    """
    usable = device.memory - device.reserved
    return usable - min(kind.sessions * context, usable // 4)


def kind_of(
    device: Device, shards: int, name: str, kinds: Sequence[GpuKind], context: int
) -> GpuKind:
    """The kind of a GPU with this number of shards; Slurm does not always report the type."""
    matches = [
        kind
        for kind in kinds
        if kind.sharing == "shared"
        and kind.shards == shards
        and is_like(device, kind, context)
        and name in ("", kind.name)
    ]
    if len(matches) != 1:
        raise Refused(
            f"{device.name} with {device.memory // MIB} MiB in {shards} shards is "
            f"{'no kind' if not matches else 'more than one kind'} of GPU in the settings"
        )
    return matches[0]


def is_like(device: Device, kind: GpuKind, context: int) -> bool:
    """Whether a GPU has about the memory of a kind (vendors' definitions of a gigabyte differ).

    The settings may state the total or the divisible memory.
    """
    shared = kind.sharing == "shared"
    minimum = divisible(device, kind, context) if shared else device.memory
    return LIKENESS * minimum <= kind.memory_mb * MIB <= device.memory / LIKENESS


def folder_of(job: int, jobs: Path = JOBS) -> Path:
    """The folder of a job's slice."""
    return jobs / str(job)


def write(  # atomic: the folder appears with all of its content
    jobs: Path, job: int, owner: tuple[int, int], files: dict[str, str]
) -> None:
    """Create a job's folder, replacing that of an earlier run. Raises OSError."""
    jobs.mkdir(parents=True, exist_ok=True)
    remove(jobs, job)
    work = jobs / f".new-{job}"
    clear(work)
    (work / "driver").mkdir(parents=True)
    for folder in (jobs, work, work / "driver"):
        folder.chmod(0o755)  # whatever the umask is
    for name, text in files.items():
        (work / name).write_text(text, encoding="utf-8")
        (work / name).chmod(0o644)
    if "slice" in files:
        _make_counters(work, owner)
    work.rename(folder_of(job, jobs))


def _make_counters(folder: Path, owner: tuple[int, int]) -> None:
    room = folder / "room"
    room.mkdir()
    room.chmod(0o755)
    memory.mount(room, COUNTERS_SIZE)
    (folder / "counters").symlink_to("room/counters")
    with (room / "counters").open("wb") as stream:
        # Allocated, since writing to a mapped page without space would kill the process.
        os.posix_fallocate(stream.fileno(), 0, COUNTERS_SIZE)
        os.fchown(stream.fileno(), *owner)
        os.fchmod(stream.fileno(), 0o600)


def remove(jobs: Path, job: int) -> None:
    """Remove a job's folder atomically. Idempotent."""
    old = jobs / f".old-{job}"
    clear(old)
    try:
        folder_of(job, jobs).rename(old)
    except FileNotFoundError:
        return
    clear(old)


def clear(folder: Path) -> None:
    """Remove an unused folder, complete or not, as far as possible."""
    with contextlib.suppress(OSError):
        memory.unmount(folder / "room")
    shutil.rmtree(folder, ignore_errors=True)


def all_jobs(jobs: Path) -> Iterator[int]:
    """The jobs that have a folder."""
    if jobs.is_dir():
        yield from sorted(int(path.name) for path in jobs.iterdir() if path.name.isdigit())


def write_atomically(file: Path, text: str) -> None:
    """Replace a file atomically: readers see the old or the new one."""
    work = file.with_name(f".{file.name}.new")
    work.write_text(text, encoding="utf-8")
    work.chmod(0o644)
    work.replace(file)
