"""Sizes, times and amounts as text and back: MiB, minutes, cores and fGPU.

Slurm's units throughout: memory in MiB (1 GB is 1024 MB), time limits in minutes.
"""

from __future__ import annotations

import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from enum import Enum
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

from portal.core.validation import wrong

_SIZE = r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([MGTmgt])(?:[Ii]?[Bb])?"
MIB = {"m": 1, "g": 1024, "t": 1024 * 1024}
"""MiB in one of each unit."""
MIN_MEMORY_MB = 256
"""Below this, the gateway, the runner and one Jupyter server do not start."""
MAX_MEMORY_MB = 64 * 1024 * 1024
MINUTES_A_DAY = 1440


def with_unit(text: str) -> str:
    """A size entered in a form: a bare number means GB ("2.5" becomes "2.5 GB")."""
    bare = re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,3})?", text.strip(), re.ASCII)
    return f"{bare[0]} GB" if bare else text


def parse_size(value: object) -> int:
    """Parse a size such as "600m" or "1.5g" to whole MiB; raises ValueError."""
    if not isinstance(value, str) or not (match := re.fullmatch(_SIZE, value, re.ASCII)):
        raise ValueError('write a size with its unit, for example "600 MB" or "2 GB"')
    return round(float(match[1]) * MIB[match[2].lower()])


def format_size(mb: int) -> str:
    """Write MiB in parse_size's format ("600m", "2g"), in the largest exact unit."""
    for unit in ("t", "g"):
        if mb and mb % MIB[unit] == 0:
            return f"{mb // MIB[unit]}{unit}"
    return f"{mb}m"


class Rounding(Enum):
    """How an amount is rounded for display."""

    NEAREST = "nearest"
    DOWN = "down"
    """For limits: the displayed amount can be requested."""


def gb_number(mb: float, rounding: Rounding = Rounding.NEAREST) -> str:
    """Write MiB as a number of GB: "0.98", "1.5", "12.5", "300"; every size is shown by this.

    Two decimals below 10 GB, one below 100 GB, else none. An amount above zero is never "0".
    """
    gb = Decimal(mb) / 1024
    places = Decimal("0.01") if gb < 10 else Decimal("0.1") if gb < 100 else Decimal(1)
    how = ROUND_DOWN if rounding is Rounding.DOWN else ROUND_HALF_UP
    shown = gb.quantize(places, how)
    if gb and not shown and rounding is Rounding.NEAREST:
        shown = places
    return f"{shown.normalize():f}" if shown % 1 else f"{shown:.0f}"


def exact_size(mb: int) -> str:
    """Write MiB as people enter it, without rounding: "2 GB", "0.6 GB", "600 MB"."""
    gb = gb_number(mb)
    in_gb = float(gb) >= 0.1 and round(float(gb) * 1024) == mb
    return f"{gb} GB" if in_gb else f"{mb} MB"


def floor_size(mb: int) -> str:
    """Write MiB for display, rounded down, so that requesting it never exceeds the limit."""
    return f"{gb_number(mb, Rounding.DOWN)} GB"


def rounded_size(mb: float) -> str:
    """Write MiB for display, rounded to the nearest: "0.98 GB", "1.5 GB"."""
    return f"{gb_number(mb)} GB"


def file_size(size: int) -> str:
    """Write the size of files in bytes, in one unit: "40 KB", "3 MB", "1.2 GB"."""
    if size < 2**20:
        return f"{-(-size // 1024)} KB"
    return f"{round(size / 2**20)} MB" if size < 1000 * 2**20 else rounded_size(size / 2**20)


def format_amount(resource: str, amount: float) -> str:
    """Write an amount of "cpus" (cores), "memory_mb" (MiB) or "fgpu" with its unit."""
    if resource == "memory_mb":
        return rounded_size(amount)
    return format_cores(int(amount)) if resource == "cpus" else format_fgpu(amount)


def amounts(resource: str, part: float, total: float) -> tuple[str, str]:
    """Write a part and its total, with the unit once: "2" and "3 GB", "1" and "4 cores"."""
    if resource == "memory_mb":
        return gb_number(part), floor_size(int(total))
    return fgpu_number(part), format_amount(resource, total)


def format_cores(number: int) -> str:
    """Write a number of cores: "1 core", "4 cores"."""
    return plural(number, "core")


def plural(number: int, noun: str) -> str:
    """Write a number with its noun: "1 node", "2 nodes"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_minutes(minutes: int) -> str:
    """Write minutes in words: "1 day 2 hours"."""
    days, hours, remaining = _split_minutes(minutes)
    units = ((days, "day"), (hours, "hour"), (remaining, "minute"))
    return " ".join(plural(number, unit) for number, unit in units if number) or "0 minutes"


def short_minutes(minutes: int) -> str:
    """Write minutes briefly: "1 d 2 h"."""
    days, hours, remaining = _split_minutes(minutes)
    units = ((days, "d"), (hours, "h"), (remaining, "min"))
    return " ".join(f"{number} {unit}" for number, unit in units if number) or "0 min"


_DURATION = re.compile(
    r"(?:([0-9]{1,4}(?:\.[0-9]{1,2})?) ?d(?:ays?)?)? ?"
    r"(?:([0-9]{1,5}(?:\.[0-9]{1,2})?) ?h(?:ours?)?)? ?"
    r"(?:([0-9]{1,6}) ?m(?:in(?:utes?)?)?)?",
    re.ASCII | re.IGNORECASE,
)


def parse_duration(value: object) -> int:
    """Parse a time to minutes: 90, "90", "1:30" (h:mm), "8h", "1 h 30 min"; raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        if re.fullmatch(r"[0-9]{1,6}", value, re.ASCII):
            return int(value)
        if match := re.fullmatch(r"([0-9]{1,4}):([0-5][0-9])", value, re.ASCII):
            return int(match[1]) * 60 + int(match[2])
        match = _DURATION.fullmatch(value)
        if match and any(match.groups()):
            days, hours, minutes = (float(part or 0) for part in match.groups())
            return round(days * MINUTES_A_DAY + hours * 60 + minutes)
    raise ValueError('write a time, for example 90 (minutes), "1:30", "8 h" or "2 d"')


def _split_minutes(minutes: int) -> tuple[int, int, int]:
    days, remaining = divmod(minutes, MINUTES_A_DAY)
    return days, remaining // 60, remaining % 60


def fgpu_number(fgpu: Fraction | float | None) -> str:
    """Write an amount of fGPU as a bare number, to three decimals: "0.5"."""
    return f"{round(float(fgpu or 0), 3):g}"


def format_fgpu(fgpu: Fraction | float) -> str:
    """Write an amount of fGPU: "0.5 fGPU"."""
    return f"{fgpu_number(fgpu)} fGPU"


def _read_size(value: object) -> int:
    try:
        return parse_size(value)
    except ValueError as error:
        raise wrong(str(error)) from None


def _size_from(least: int) -> AfterValidator:
    def validate(size: int) -> int:
        if size < least:
            raise wrong(f"this must be at least {exact_size(least)}")
        if size > MAX_MEMORY_MB:
            raise wrong(f"this must be at most {MAX_MEMORY_MB // MIB['t']} TB")
        return size

    return AfterValidator(validate)


_SIZE_JSON = {"type": "string", "examples": ["600m", "2g"], "pattern": f"^{_SIZE}$"}

_Size = Annotated[int, BeforeValidator(_read_size), PlainSerializer(format_size, return_type=str)]
Memory = Annotated[
    _Size,
    _size_from(MIN_MEMORY_MB),
    WithJsonSchema(_SIZE_JSON),
]
SharedMemory = Annotated[
    _Size,
    _size_from(1),
    WithJsonSchema(_SIZE_JSON | {"description": "size of /dev/shm, a part of memory"}),
]
JobMemory = Annotated[
    _Size,
    _size_from(1),
    WithJsonSchema(_SIZE_JSON | {"description": "memory on each node (sbatch --mem)"}),
]


def _read_duration(value: object) -> int:
    try:
        minutes = parse_duration(value)
    except ValueError as error:
        raise wrong(str(error)) from None
    if minutes < 1:
        raise wrong("this must be at least 1 minute")
    if minutes > MAX_MINUTES:
        raise wrong(f"this must be at most {format_minutes(MAX_MINUTES)}")
    return minutes


MAX_MINUTES = 525_600
TimeLimit = Annotated[
    int,
    BeforeValidator(_read_duration),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MAX_MINUTES},
                {"type": "string", "examples": ["90", "1:30", "8h", "1 h 30 min", "2d"]},
            ],
            "description": "minutes, or a time such as 1:30 (h:mm), 8h or 2d",
        }
    ),
]
Minutes = Annotated[int, Field(ge=1, le=525_600, description="minutes")]
Percent = Annotated[int, Field(ge=1, le=100, description="percent of one core")]
