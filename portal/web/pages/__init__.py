"""The pages: what people see and press. One file for each page; all hang on one blueprint."""

from __future__ import annotations

from portal.web.pages import (
    account,
    admin,
    apps,
    launch,
    log,
    people,
    presets,
    sessions,
    ssh,
    tending,
)
from portal.web.pages.blueprint import blueprint

__all__ = [
    "account",
    "admin",
    "apps",
    "blueprint",
    "launch",
    "log",
    "people",
    "presets",
    "sessions",
    "ssh",
    "tending",
]
