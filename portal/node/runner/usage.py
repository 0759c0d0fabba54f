"""Resource use of the job, from its cgroup, which the job script mounts into the container."""

from __future__ import annotations

import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CGROUP = "/sys/fs/cgroup"
# cgroup v1 represents "no limit" as the highest multiple of the page size.
UNLIMITED = 1 << 62
# Written by the watchdog on the node about once a second.
GPU_USAGE = "/opt/slipway-gpu/usage.json"
STALE_SECONDS = 30.0


def read_usage(root: str = CGROUP, proc: str = "/proc") -> dict[str, object]:
    """Return cpu_seconds, memory_bytes, memory_limit and oom_kills of the whole job.

    Values missing in the cgroup are None; only CPU time falls back to the sum of the processes.
    """
    v2 = os.path.exists(f"{root}/memory.current")
    usage = _read_v2(root) if v2 else _read_v1(root)
    if usage["cpu_seconds"] is None:
        usage["cpu_seconds"] = _processes_cpu_seconds(proc)
    return usage


def read_oom_kills(root: str = CGROUP) -> int | None:
    """Return how many processes of the job the kernel has killed for want of memory."""
    if os.path.exists(f"{root}/memory.current"):
        return _fields(f"{root}/memory.events").get("oom_kill")
    return _v1_oom_kills(f"{root}/memory")


def read_memory_limit(root: str = CGROUP) -> int | None:
    """Return the job's memory limit in bytes; None for none."""
    if os.path.exists(f"{root}/memory.current"):
        return _limit(_number(f"{root}/memory.max"))
    return _limit(_number(f"{root}/memory/memory.limit_in_bytes"))


def read_gpu_usage(path: str = GPU_USAGE) -> dict[str, object]:
    """Return gpu_memory_bytes, gpu_percent and gpu_kills of the job; None for unknown values."""
    unknown: dict[str, object] = {"gpu_memory_bytes": None, "gpu_percent": None, "gpu_kills": None}
    try:
        data = json.loads(_text(path))
        usage = unknown | {"gpu_kills": int(data["kills"])}
        if time.time() - data["time"] > STALE_SECONDS:
            return usage
        percent = data["sm_percent"]
        return usage | {
            "gpu_memory_bytes": int(data["memory"]),
            "gpu_percent": None if percent is None else float(percent),
        }
    except (ValueError, KeyError, TypeError):
        return unknown


def _read_v2(root: str) -> dict[str, object]:
    cpu = _fields(f"{root}/cpu.stat").get("usage_usec")
    cache = _fields(f"{root}/memory.stat").get("inactive_file", 0)
    return {
        "cpu_seconds": None if cpu is None else cpu / 1e6,
        "memory_bytes": _without_cache(_number(f"{root}/memory.current"), cache),
        "memory_limit": read_memory_limit(root),
        "oom_kills": read_oom_kills(root),
    }


def _read_v1(root: str) -> dict[str, object]:
    memory = f"{root}/memory"
    cpu = _number(f"{root}/cpuacct/cpuacct.usage")
    cache = _fields(f"{memory}/memory.stat").get("total_inactive_file", 0)
    return {
        "cpu_seconds": None if cpu is None else cpu / 1e9,
        "memory_bytes": _without_cache(_number(f"{memory}/memory.usage_in_bytes"), cache),
        "memory_limit": read_memory_limit(root),
        "oom_kills": read_oom_kills(root),
    }


def _v1_oom_kills(memory: str) -> int | None:
    # v1 counts a kill only in the killed process's own group, not in those above.
    kills = [
        _fields(f"{folder}/memory.oom_control").get("oom_kill") for folder, _, _ in os.walk(memory)
    ]
    counts = [count for count in kills if count is not None]
    return sum(counts) if counts else None


def _without_cache(used: int | None, cache: int) -> int | None:
    # Inactive page cache is reclaimed before the job runs out of memory.
    return None if used is None else max(0, used - cache)


def _limit(value: int | None) -> int | None:
    return None if value is None or value >= UNLIMITED else value


def _number(path: str) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _fields(path: str) -> dict[str, int]:
    pairs = (line.split() for line in _text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _processes_cpu_seconds(proc: str) -> float:
    ticks = sum(_ticks(_text(f"{proc}/{pid}/stat")) for pid in _pids(proc))
    return ticks / os.sysconf("SC_CLK_TCK")


def _pids(proc: str) -> Iterator[str]:
    return (name for name in os.listdir(proc) if name.isdecimal())


def _ticks(stat: str) -> int:
    # utime, stime, and those of waited-for children; the name before them may contain blanks.
    fields = stat.rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15])
