"""`python -m tests.oracle N [--seed S] [--first K]`: compare N random jobs; 1 if any differs."""

from __future__ import annotations

import argparse
import random
import sys

from tests.oracle.cases import Case, generate
from tests.oracle.comparing import Difference, unexplained
from tests.oracle.running import BATCH, Oracle
from tests.support.cluster import Cluster


def main(words: list[str]) -> int:
    """Run the cases and print what differs; 1 if anything that nothing explains does."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("count", metavar="N", type=int, help="how many cases")
    parser.add_argument("--seed", type=int, help="by default a random one")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="number of the first")
    parser.add_argument("--known", action="store_true", help="print explained differences, too")
    options = parser.parse_args(words)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    numbers = range(options.first, options.first + options.count)
    print(f"seed {seed}, cases {numbers.start} to {numbers.stop - 1}", flush=True)
    oracle = Oracle(Cluster.from_environment())
    try:
        oracle.make_image()
        bad = _run(oracle, [generate(seed, number) for number in numbers], known=options.known)
    finally:
        oracle.clean()
    print(f"{options.count} cases, {bad} of them with differences that nothing explains")
    return 1 if bad else 0


def _run(oracle: Oracle, cases: list[Case], *, known: bool) -> int:
    """How many cases have differences that nothing explains; they are printed as they are found."""
    bad = 0
    for start in range(0, len(cases), BATCH):
        some = cases[start : start + BATCH]
        for number, found in oracle.run(some).items():
            case = next(case for case in some if case.number == number)
            new = unexplained(found)
            bad += bool(new)
            if new or (known and found):
                print(report(case, found if known else new), flush=True)
    return bad


def report(case: Case, found: list[Difference]) -> str:
    """A case with its differences."""
    texts = "\n".join(difference.text() for difference in found)
    return f"--- case {case.number}: {case.command}\n{case}\n{texts}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
