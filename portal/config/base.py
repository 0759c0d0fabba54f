"""Common types of all sections of the settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, ConfigDict

FROZEN = ConfigDict(frozen=True, extra="forbid")
"""Settings never change while running, and a key that does not exist is an error."""


def _in_order(ports: tuple[int, int]) -> tuple[int, int]:
    low, high = ports
    if low > high:
        raise ValueError(f"the first port, {low}, is larger than the last, {high}")
    if ports != (0, 0) and not 1024 <= low <= high <= 65535:
        raise ValueError("must be first and last port, from 1024 to 65535; [0, 0]: any free one")
    return ports


def _stays_below(path: str) -> str:
    if ".." in path.split("/"):
        raise ValueError('must not contain "..", which leads out of the folder')
    return path


AnyPorts = Annotated[tuple[int, int], AfterValidator(_in_order)]
"""First and last port; (0, 0): any that is free."""
Below = AfterValidator(_stays_below)
"""Validator of paths without "..", which are joined to other paths on other machines."""
