"""The lines of the table, and the Markdown that gres/README.md gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

NO_TIME = "not measured: no time left"
"""Instead of a figure, where the budget did not suffice."""


@dataclass(frozen=True)
class Line:
    """One line: the same program bare and in a session."""

    name: str
    bare: str
    inside: str
    aim: str
    good: bool | None
    """None: there is no aim, or it could not be measured."""

    def __str__(self) -> str:
        missed = " **missed**" if self.good is False else ""
        return f"| {self.name} | {self.bare} | {self.inside} | {self.aim}{missed} |"


def write(folder: Path, seen: dict[str, Any], lines: list[Line]) -> None:
    """The bench's own file of JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**seen, "lines": [asdict(line) for line in lines]}, indent=1)
    (folder / "step-3.json").write_text(text + "\n")


def markdown(folder: Path) -> Iterator[str]:
    """What all steps have left in a folder, as a block for gres/README.md."""
    steps = [json.loads(path.read_text()) for path in sorted(folder.glob("step-*.json"))]
    for step in [step for step in steps if "lines" in step]:
        yield f"**{step['gpu']}**, {step['memory'] >> 20} MiB, {', '.join(step['versions'])}"
        if step["standin"]:
            yield "\nNo GPU: a stand-in driver, so these figures mean nothing."
        yield "\n| measured | bare | in a session | aim |\n|---|---|---|---|"
        yield from (str(Line(**line)) for line in step["lines"])
    cases = [case for step in steps for case in step.get("cases", ())]
    if cases:
        passed = [case["name"] for case in cases if case["status"] == "passed"]
        yield f"\nCases: {len(passed)} of {len(cases)} passed."
        yield from (
            f"- {case['status']}: {case['name']}: {case['why'].splitlines()[0]}"
            for case in cases
            if case["status"] != "passed" and case["why"]
        )
        yield "\n| seen by the cases | figure |\n|---|---|"
        yield from (
            f"| {name} | {value} |" for case in cases for name, value in case["figures"].items()
        )
