"""Sizes, times and amounts as text and back: MiB, minutes, cores and fGPU.

Slurm's units throughout: memory in MiB (1 GB is 1024 MB), time limits in minutes.
"""

from __future__ import annotations

import re
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


def parse_size(value: object) -> int:
    """Parse a size such as "600m" or "1.5g" to whole MiB; raises ValueError."""
    if not isinstance(value, str) or not (match := re.fullmatch(_SIZE, value, re.ASCII)):
        raise ValueError('write a size with its unit, for example "600m" or "2g"')
    return round(float(match[1]) * MIB[match[2].lower()])


def format_size(mb: int) -> str:
    """Write MiB in parse_size's format ("600m", "2g"), in the largest exact unit."""
    for unit in ("t", "g"):
        if mb and mb % MIB[unit] == 0:
            return f"{mb // MIB[unit]}{unit}"
    return f"{mb}m"


def exact_size(mb: int) -> str:
    """Write MiB for display without rounding: "2 GB", "1500 MB"."""
    return f"{mb // 1024} GB" if mb and mb % 1024 == 0 else f"{mb} MB"


def floor_size(mb: int) -> str:
    """Write MiB for display, rounded down, so that requesting it never exceeds the limit."""
    if mb < 1024:
        return f"{mb} MB"
    return f"{mb * 10 // 1024 / 10:g} GB"


def rounded_size(mb: float) -> str:
    """Write MiB for display, rounded to the nearest tenth of a GB."""
    if mb >= 1024:
        return f"{mb / 1024:.1f}".removesuffix(".0") + " GB"
    return f"{mb:.0f} MB"


def format_cores(number: int) -> str:
    """Write a number of cores: "1 core", "4 cores"."""
    return plural(number, "core")


def plural(number: int, noun: str) -> str:
    """Write a number of things: "1 node", "2 nodes"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_minutes(minutes: int) -> str:
    """Write minutes in words: "1 day 2 hours"."""
    days, hours, rest = _split_minutes(minutes)
    units = ((days, "day"), (hours, "hour"), (rest, "minute"))
    return " ".join(plural(number, unit) for number, unit in units if number) or "0 minutes"


def short_minutes(minutes: int) -> str:
    """Write minutes briefly: "1 d 2 h"."""
    days, hours, rest = _split_minutes(minutes)
    units = ((days, "d"), (hours, "h"), (rest, "min"))
    return " ".join(f"{number} {unit}" for number, unit in units if number) or "0 min"


def _split_minutes(minutes: int) -> tuple[int, int, int]:
    days, rest = divmod(minutes, MINUTES_A_DAY)
    return days, rest // 60, rest % 60


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
            raise wrong(f"this must be at least {format_size(least)}")
        if size > MAX_MEMORY_MB:
            raise wrong(f"this must be at most {format_size(MAX_MEMORY_MB)}")
        return size

    return AfterValidator(validate)


_SIZE_JSON = {"type": "string", "examples": ["600m", "2g"], "pattern": f"^{_SIZE}$"}

Memory = Annotated[
    int,
    BeforeValidator(_read_size),
    _size_from(MIN_MEMORY_MB),
    PlainSerializer(format_size, return_type=str),
    WithJsonSchema(_SIZE_JSON),
]
SharedMemory = Annotated[
    int,
    BeforeValidator(_read_size),
    _size_from(1),
    PlainSerializer(format_size, return_type=str),
    WithJsonSchema(_SIZE_JSON | {"description": "size of /dev/shm, a part of memory"}),
]
Minutes = Annotated[int, Field(ge=1, le=525_600, description="minutes")]
Percent = Annotated[int, Field(ge=1, le=100, description="percent of one core")]
