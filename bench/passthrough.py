"""The cost of `slipway sbatch` without options of Slipway's, against sbatch itself.

    python -m bench.passthrough [--rounds 100]

runs on the login node of the cluster that SLIPWAY_PROJECT names, or of the one of `make up`, as
alice. Each round runs sbatch, slipway and an empty program in the same Python, in another order
each time. `--version` is the shortest that sbatch can do: nothing is asked of Slurm, so that its
own work hides no cost.

Printed: in milliseconds, the medians of the commands and the fastest of their rounds; the median of
the differences within each round, and that between the fastest, which a busy machine delays least.
The exit code is 1 if even that is more than 30 ms.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import dataclass

from tests.support.cluster import Cluster

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
    start = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start

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
    """Milliseconds."""

    medians: dict[str, float]
    fastest: dict[str, float]
    extra: float
    """The median of slipway's cost in each round."""

    @property
    def least(self) -> float:
        """Slipway's cost in the fastest rounds."""
        return self.fastest["slipway sbatch"] - self.fastest["sbatch"]

    def __str__(self) -> str:
        lines = [
            f"{name:15} {median:6.1f} ms, fastest {self.fastest[name]:6.1f} ms"
            for name, median in self.medians.items()
        ]
        cost = f"{self.extra:.1f} ms more, fastest {self.least:.1f} ms (at most {MOST:g} ms)"
        return "\n".join([*lines, f"slipway sbatch costs {cost}"])


def figures(rounds: list[dict[str, float]]) -> Figures:
    """What all rounds took."""
    times = {
        name: [each[name] * 1000 for each in rounds]
        for name in ("sbatch", "slipway sbatch", "python3")
    }
    extra = [each["slipway sbatch"] - each["sbatch"] for each in rounds]
    return Figures(
        {name: statistics.median(milliseconds) for name, milliseconds in times.items()},
        {name: min(milliseconds) for name, milliseconds in times.items()},
        statistics.median(extra) * 1000,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    cluster = Cluster.from_environment()
    printed = cluster.run("login", "python3", "-c", RUN, str(options.rounds), user="alice")
    result = figures(json.loads(printed))
    print(result)
    sys.exit(result.least > MOST)


if __name__ == "__main__":
    main()
