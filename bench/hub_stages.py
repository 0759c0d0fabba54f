"""When the stages of a start of JupyterHub's server began, as the nodes remember it afterwards."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bench.hubs import Hub
from tests.support.cluster import Cluster

# On a node, as root: when each of a user's servers began, and when it wrote the file that Jupyter
# writes once it listens. The same code for both, and neither is asked anything.
LOOK = """
import glob, json, os, pwd, sys, time

booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
servers = []
for folder in glob.glob("/proc/[0-9]*"):
    try:
        words = open(folder + "/cmdline").read().split("\\0")
        if not os.path.basename(os.readlink(folder + "/exe")).startswith("python"):
            continue
        if not any(word.endswith("singleuser") for word in words):
            continue
        if pwd.getpwuid(os.stat(folder).st_uid).pw_name != sys.argv[1]:
            continue
        ticks = int(open(folder + "/stat").read().rpartition(")")[2].split()[19])
        began = booted + ticks / os.sysconf("SC_CLK_TCK")
        lines = open(folder + "/environ").read().split("\\0")
        env = dict(line.split("=", 1) for line in lines if "=" in line)
        runtime = env.get("JUPYTER_RUNTIME_DIR", env["HOME"] + "/.local/share/jupyter/runtime")
        files = glob.glob(folder + "/root" + runtime + "/jpserver-*.json")
        listens = max((os.stat(file).st_mtime for file in files), default=0.0)
        servers.append((began, listens))
    except (OSError, KeyError):
        continue
print(json.dumps(servers))
"""


@dataclass(frozen=True)
class Round:
    """One start; times in seconds since 1970."""

    requested: float
    script: float
    """When the batch script ran its first lines."""
    process: float
    """When the server's process began, in its container."""
    listens: float
    """When the server had been imported and listened."""
    answered: float
    """When it answered through the hub's proxy."""

    @property
    def total(self) -> float:
        """Seconds from the request to the response."""
        return self.answered - self.requested

    @property
    def queued(self) -> float:
        """Seconds until Slurm ran the script; its scheduler's tick is mostly chance."""
        return self.script - self.requested

    @property
    def container(self) -> float:
        """Seconds from there until the server's process began."""
        return self.process - self.script

    @property
    def importing(self) -> float:
        """Seconds that the server took until it listened."""
        return self.listens - self.process

    @property
    def noticing(self) -> float:
        """Seconds until the hub knew, checked and routed it."""
        return self.answered - self.listens

    @property
    def beyond_queue(self) -> float:
        """Seconds without Slurm's part."""
        return self.answered - self.script


def server_times(cluster: Cluster, user: str) -> tuple[float, float]:
    """Begin and listening of the user's only server."""
    servers: list[list[float]] = []
    for node in ("n1", "n2"):
        servers += json.loads(cluster.run(node, "python3", "-c", LOOK, user))
    assert len(servers) == 1, f"{user} has these servers: {servers}"
    return servers[0][0], servers[0][1]


def script_time(cluster: Cluster, user: str, folder: str) -> float:
    """When the newest of these folders was created; the batch scripts create theirs first."""
    find = f"stat --format=%.W {folder} | sort -n | tail -n 1"
    return float(cluster.shell("login", find, user=user))


def look(cluster: Cluster, hub: Hub, folder: str, requested: float, answered: float) -> Round:
    """The round of the server that runs now."""
    script = script_time(cluster, hub.user, folder)
    process, listens = server_times(cluster, hub.user)
    return Round(requested, script, process, listens, answered)
