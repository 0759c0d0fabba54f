"""Processor time of the portal's and Slurm's programs, and counts of what they do."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.cluster import Cluster

OF_PORTAL: tuple[str, ...] = ("web", "haproxy", "worker")
"""Names of the programs of each portal host at supervisord."""
TICKS = 100
"""Of the kernel per second, in /proc/PID/stat; the same on all machines that run Slurm."""
STATS = """
for name in $1; do echo "$name $(supervisorctl pid $name)"; done
echo
cat /proc/[0-9]*/stat 2>/dev/null
"""
CONTAINER = """
cd /sys/fs/cgroup
cat cpuacct/cpuacct.usage 2>/dev/null || sed -n 's/^usage_usec \\(.*\\)/\\1000/p' cpu.stat
"""
"""Nanoseconds that a whole machine has used."""
COMMANDS = "http://127.0.0.1:9464/metrics"


@dataclass(frozen=True)
class Reading:
    """Seconds of processor time so far, and counts."""

    at: float
    cpu: Mapping[str, float]
    """By program, all portal hosts together; `login`: all of the login node."""
    polls: float
    """Polls of the queue by the worker."""
    calls: int
    """Calls that slurmctld has answered."""
    busy: float
    """Seconds that all processors of the machine were busy."""

    def since(self, before: Reading) -> Used:
        """What was used since an earlier reading."""
        cpu = {name: seconds - before.cpu[name] for name, seconds in self.cpu.items()}
        others = self.busy - before.busy - sum(cpu.values())
        polls, calls = self.polls - before.polls, self.calls - before.calls
        return Used(self.at - before.at, cpu, polls, calls, others)


@dataclass(frozen=True)
class Used:
    """What was used during some seconds."""

    seconds: float
    cpu: dict[str, float]
    polls: float
    calls: int
    others: float
    """Seconds of all else on this machine: the clients, and what has nothing to do with this."""

    def share(self, program: str) -> float:
        """Percent of a processor."""
        return 100 * self.cpu[program] / self.seconds


def read(cluster: Cluster) -> Reading:
    """Read all meters."""
    cpu: defaultdict[str, float] = defaultdict(float)
    programs = dict.fromkeys(cluster.portals, OF_PORTAL) | {"ctl": ("slurmctld",)}
    for machine, names in programs.items():
        used = _programs(cluster.run(machine, "sh", "-c", STATS, "sh", " ".join(names)))
        for name, seconds in used.items():
            cpu[name] += seconds
    cpu["login"] = int(cluster.shell("login", CONTAINER)) / 1e9
    return Reading(time.monotonic(), cpu, polls(cluster), _calls(cluster), _busy())


def _metrics(cluster: Cluster, pattern: str) -> list[float]:
    """A metric's values at the portal's hosts."""
    texts = [cluster.run(host, "curl", "-fsS", COMMANDS) for host in cluster.portals]
    values = [re.search(rf"^{pattern} (\S+)", text, re.M) for text in texts]
    return [float(match[1]) for match in values if match]


def _busy() -> float:
    """From the line `cpu user nice system idle iowait irq softirq …` of /proc/stat."""
    words = Path("/proc/stat").read_text(encoding="ascii").split()[1:8]
    user, nice, system, _idle, _iowait, irq, soft = map(int, words)
    return (user + nice + system + irq + soft) / TICKS


def polls(cluster: Cluster) -> float:
    """Polls of the queue by all workers so far, also by those that have ended since."""
    return sum(_metrics(cluster, 'slipway_slurm_command_seconds_count\\{command="squeue"\\}'))


def followed(cluster: Cluster) -> int:
    """The number of jobs in Slurm's queue that the portal has stored."""
    return int(max(_metrics(cluster, "slipway_jobs_followed"), default=0))


def _programs(text: str) -> dict[str, float]:
    names, _, stats = text.partition("\n\n")
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for line in stats.splitlines():
        pid, _, fields = line.partition(" ")
        words = fields.rpartition(")")[2].split()
        parents[int(pid)] = int(words[1])
        # Children that have ended count for the process that waited for them.
        ticks[int(pid)] = sum(map(int, words[11:15]))
    seconds = {}
    for line in names.splitlines():
        name, root = line.split()
        tree = [int(root)] if int(root) else []  # 0: it does not run
        for above in tree:
            tree += [pid for pid, parent in parents.items() if parent == above]
        seconds[name] = sum(ticks.get(pid, 0) for pid in tree) / TICKS
    return seconds


def _calls(cluster: Cluster) -> int:
    """RPCs of the portal's account."""
    text = cluster.run("ctl", "sdiag").partition("statistics by user")[2]
    match = re.search(r"^\s+slipway\s+\(\s*\d+\)\s+count:(\d+)", text, re.M)
    return int(match[1]) if match else 0
