"""Bodies of job submissions."""

from __future__ import annotations

from typing import Any

SCRIPT = "#!/bin/sh\nhostname\n"
ALL_FIELDS: dict[str, Any] = {
    "script": SCRIPT,
    "args": ["-n", "two words", "", "it's $HOME"],
    "name": "a job's name",
    "image": "python/3.13",
    "resource_group": "main",
    "resources": {
        "nodes": 2,
        "tasks": 8,
        "cpus": 4,
        "memory": "1500m",
        "shared_memory": "1g",
        "fgpu": 0.5,
        "gpu_kind": "demo",
    },
    "time_limit": 90,
    "mounts": [{"folder": "data", "read_only": True}],
    "directory": "~/runs of mine",
    "array": "0-19%4",
    "options": ["--hold", "--constraint=avx"],
}
