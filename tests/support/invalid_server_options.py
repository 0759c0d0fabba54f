"""Options of JupyterHub's servers that must be refused, generated from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.hubs import SERVER


@dataclass(frozen=True)
class Bad:
    """Options, and the field that the refusal must name."""

    field: str
    options: Any


ODD: list[Any] = [
    None, True, "", " ", [], {}, [1], {"a": 1}, -1, 0, 10**12, 1e308, -0.5, float("nan"),
    float("inf"), "x" * 5000, "a\0b", "a\nb", "\ud800", "../../etc/passwd", "$(id)", "'; DROP",
    "\u202ealice", "NaN", "1e9", "9" * 400,
]  # fmt: skip
"""Values that hardly any field accepts."""


def _pick(chance: random.Random, *fine: Callable[[Any], bool]) -> Any:
    """An odd value that none of `fine` accepts."""
    return chance.choice([value for value in ODD if not any(accept(value) for accept in fine)])


def _is_none(value: Any) -> bool:
    return value is None


def _is_empty(value: Any) -> bool:
    return value in ("", [], {}) and not isinstance(value, bool)


def _resources(chance: random.Random) -> Bad:
    field = chance.choice(["cpus", "memory"])
    value = _pick(chance)
    return Bad(f"resources.{field}", SERVER | {"resources": SERVER["resources"] | {field: value}})


def _environment(chance: random.Random) -> Bad:
    return Bad("environment", SERVER | {"environment": _pick(chance)})


def _version(chance: random.Random) -> Bad:
    return Bad("version", SERVER | {"version": _pick(chance, _is_none)})


def _time(chance: random.Random) -> Bad:
    return Bad("time_limit", SERVER | {"time_limit": _pick(chance, _is_none)})


def _group(chance: random.Random) -> Bad:
    return Bad("resource_group", SERVER | {"resource_group": _pick(chance, _is_none)})


def _variables(chance: random.Random) -> Bad:
    name = chance.choice(["A B", "", "1A", "A=B", "\u00e9", "A" * 200, "LD_PRELOAD\0", "A\n"])
    return Bad("env", SERVER | {"env": {name: "x"}})


def _mounts(chance: random.Random) -> Bad:
    folder = _pick(chance)
    return Bad("mounts", SERVER | {"mounts": [{"folder": folder}]})


def _unknown(chance: random.Random) -> Bad:
    name = chance.choice(["uid", "owner", "user", "script", "sbatch", "nodes", "Environment"])
    return Bad(name, SERVER | {name: _pick(chance)})


def _no_object(chance: random.Random) -> Bad:
    return Bad("", chance.choice([[], [1], "x", 5, True, 1.5, ["environment"]]))


def _whole(chance: random.Random) -> Bad:
    value = chance.choice(["x", 5, [], True, "1 core"])
    return Bad("resources", SERVER | {"resources": value})


KINDS = (
    _resources, _resources, _environment, _version, _time, _group, _variables, _mounts, _unknown,
    _no_object, _whole,
)  # fmt: skip


def bad_options(seed: str, count: int) -> list[Bad]:
    """Reproducible bad options, of all kinds in turn."""
    chance = random.Random(seed)
    return [KINDS[number % len(KINDS)](chance) for number in range(count)]
