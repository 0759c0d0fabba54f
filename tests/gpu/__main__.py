"""The suite for a machine with an NVIDIA GPU; run.sh calls it.

python -m tests.gpu 1            the cases of a step, each in a process and with a limit of its own
python -m tests.gpu lookups …    cases by name
python -m tests.gpu --list       all cases, and what must be seen
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.gpu.case import Case, all_cases
from tests.gpu.inside import run_here
from tests.gpu.prepare import PrepareFailed, prepare
from tests.gpu.runner import Runner
from tests.gpu.steps import STEPS, cases_of


def _list() -> int:
    for step, about in STEPS.items():
        print(f"step {step}: {about}")
        for one in cases_of(step):
            print(f"  {one.name} (at most {one.limit} s): {one.must}")
    return 0


def _chosen(words: list[str]) -> tuple[str, list[Case]]:
    """The name of what is run, and its cases. Raises KeyError."""
    if len(words) == 1 and words[0] in STEPS:
        return words[0], cases_of(words[0])
    known = {one.name: one for one in all_cases()}
    return "some", [known[name] for name in words]


def main(words: list[str]) -> int:
    """The exit status."""
    if words[:1] == ["--list"]:
        return _list()
    if words[:1] == ["--here"]:
        return run_here(words[1], Path(words[2]))
    try:
        name, cases = _chosen(words)
    except KeyError as error:
        print(f"no such step or case: {error} (python -m tests.gpu --list)", file=sys.stderr)
        return 2
    if not cases:
        print(__doc__, file=sys.stderr)
        return 2
    runner = Runner(name)
    try:
        gpu, settings = prepare()
    except PrepareFailed as error:
        print(f"tests/gpu cannot run: {error}", file=sys.stderr)
        return 1
    return runner.run(gpu, cases, settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
