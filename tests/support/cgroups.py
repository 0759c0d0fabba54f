"""A session's cgroup as its programs see it."""

from __future__ import annotations

MB = 1 << 20
SEEN_IN_CGROUP = """
import json, os
root = "/sys/fs/cgroup"
v2 = os.path.exists(f"{root}/memory.max")
limit = f"{root}/memory.max" if v2 else f"{root}/memory/memory.limit_in_bytes"
cores = f"{root}/cpuset.cpus.effective" if v2 else f"{root}/cpuset/cpuset.cpus"
count = 0
for part in open(cores).read().strip().split(","):
    first, _, last = part.partition("-")
    count += int(last or first) - int(first) + 1
nproc = int(os.popen("nproc").read())
print(json.dumps([int(open(limit).read()), count, len(os.sched_getaffinity(0)), nproc]))
"""
