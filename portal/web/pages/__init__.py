"""The pages: what people see and press. One file for each page; all hang on one blueprint."""

from __future__ import annotations

from portal.web.pages import admin, apps, launch, log, presets, sessions, ssh, tending
from portal.web.pages.blueprint import blueprint

__all__ = ["admin", "apps", "blueprint", "launch", "log", "presets", "sessions", "ssh", "tending"]
