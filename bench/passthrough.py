"""The cost of `slipway sbatch` without options of Slipway's, against sbatch itself.

    python -m bench.passthrough [--rounds 100]

runs on the login node of the cluster that SLIPWAY_PROJECT names, or of the one of `make up`, as
alice. Each round runs sbatch, slipway and an empty program in the same Python, in another order
each time. `--version` is the shortest that sbatch can do: nothing is asked of Slurm, so that its
own work hides no cost.

Printed: medians in milliseconds, their ratio, and the median of the differences in each round. The
exit code is 1 if that is more than 30 ms.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import dataclass

from tests.cluster import Cluster

MOST = 30.0
"""Milliseconds that the command may cost."""

# On the login node: the durations of each command in seconds, by rounds.
RUN = """
import json, random, subprocess, sys, time

commands = {
    "sbatch": ["sbatch", "--version"],
    "slipway sbatch": ["slipway", "sbatch", "--version"],
    "python3": ["python3", "-I", "-c", "pass"],
}

def took(argv):
    begun = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun

for argv in commands.values():  # reads the files into memory
    took(argv)
rounds = []
for _ in range(int(sys.argv[1])):
    names = random.sample(sorted(commands), len(commands))
    rounds.append({name: took(commands[name]) for name in names})
print(json.dumps(rounds))
"""


@dataclass(frozen=True)
class Figures:
    """Medians in milliseconds."""

    sbatch: float
    slipway: float
    python: float
    more: float
    """Of slipway's than sbatch's in the same round."""

    def __str__(self) -> str:
        ratio = self.slipway / self.sbatch
        lines = [
            f"sbatch --version          {self.sbatch:7.1f} ms",
            f"slipway sbatch --version  {self.slipway:7.1f} ms, {ratio:.1f} times as long",
            f"an empty Python program   {self.python:7.1f} ms",
            f"slipway costs {self.more:.1f} ms more (at most {MOST:g} ms)",
        ]
        return "\n".join(lines)


def figures(rounds: list[dict[str, float]]) -> Figures:
    """The medians of all rounds."""

    def median(name: str) -> float:
        return statistics.median(each[name] for each in rounds) * 1000

    more = statistics.median(each["slipway sbatch"] - each["sbatch"] for each in rounds) * 1000
    return Figures(median("sbatch"), median("slipway sbatch"), median("python3"), more)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    asked = parser.parse_args()
    cluster = Cluster.from_environment()
    printed = cluster.run("login", "python3", "-c", RUN, str(asked.rounds), user="alice")
    found = figures(json.loads(printed))
    print(found)
    sys.exit(found.more > MOST)


if __name__ == "__main__":
    main()
