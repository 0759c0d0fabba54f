"""Settings of a site for the commands."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.node.batch.settings import Settings, load

KINDS = [
    {
        "name": "a100",
        "title": "A100",
        "memory_mb": 81920,
        "unit": "1/2",
        "step": "1/2",
        "sharing": "shared",
        "compute": "limiter",
    },
    {
        "name": "h100",
        "title": "H100",
        "memory_mb": 81920,
        "unit": "1",
        "step": "1",
        "sharing": "whole",
        "compute": "none",
    },
]


def site(**changes: Any) -> dict[str, Any]:
    """The content of the settings file."""
    images = [
        {"environment": "python", "version": "3.13", "path": "/i/python313.sif", "default": True},
        {"environment": "python", "version": "3.11", "path": "/i/python311.sif"},
        {"environment": "r", "version": "4", "path": "/i/r4.sif", "visible_to": ["bob"]},
        {"environment": "debian", "version": "12", "path": "/i/d12.sif", "hidden_from": ["eve"]},
    ]
    return {
        "version": 1,
        "command": "/usr/local/bin/slipway",
        "toolkit": "/srv/toolkit.sqsh",
        "storage": "storage",
        "binds": ["/scratch"],
        "own_images": ["file", "docker"],
        "registries": ["registry.example.org", "plain.example.org:5000"],
        "insecure": ["plain.example.org:5000"],
        "max_shared_memory_mb": 4096,
        "gpu_kinds": KINDS,
        "images": images,
        **changes,
    }


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings, read from a file."""
    file = tmp_path / "batch.json"
    file.write_text(json.dumps(site()))
    return load(str(file))


@pytest.fixture(autouse=True)
def signals_of_slurm() -> Iterator[None]:
    """Programs begin with the signals that Slurm gives them.

    These tests may themselves ignore some: SIGHUP under nohup, the others in a script's background.
    """
    ignored = [
        number
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
        if signal.getsignal(number) is signal.SIG_IGN
    ]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
