"""A site's settings file."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.paths import ROOT


def write_config(folder: Path) -> str:
    """Write settings with all places in the folder; returns the file's path."""
    file = folder / "slipway.toml"
    places = ("state", "run", "images", "apps")
    quoted = {name: json.dumps(str(folder / name)) for name in places}
    file.write_text(
        f"[sessions]\ntemplates = {json.dumps(str(ROOT / 'templates'))}\n"
        f"images = {quoted['images']}\napps = {quoted['apps']}\n"
        f"[state]\ndirectory = {quoted['state']}\nrun = {quoted['run']}\n"
        f"[login]\nhost = '127.0.0.1'\nport = 1\nknown_hosts = {json.dumps(str(file))}\n"
    )
    return str(file)
