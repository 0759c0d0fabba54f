"""Every setting that a page of docs/ or README.md names exists, in text and in examples."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from portal.config.settings import Settings
from tests.support.paths import ROOT

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
_NAMED = re.compile(r"`([a-z]+)\.([a-z_]+)(?: = [^`]*)?`")


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def unknown(model: type[BaseModel], values: dict[str, Any], place: str = "") -> list[str]:
    """The keys of an example that the settings do not have."""
    found = []
    for key, value in values.items():
        if key not in model.model_fields:
            found.append(f"{place}{key}")
            continue
        inner = next(_models(model.model_fields[key].annotation), None)
        for one in value if isinstance(value, list) else [value]:
            if inner is not None and isinstance(one, dict):
                found += unknown(inner, one, f"{place}{key}.")
    return found


def named(page: Path) -> list[str]:
    """What a page calls SECTION.KEY, of the settings' sections."""
    text = page.read_text(encoding="utf-8")
    return [f"{a}.{b}" for a, b in _NAMED.findall(text) if a in Settings.model_fields]


def examples(page: Path) -> list[dict[str, Any]]:
    """The examples of settings on a page: blocks whose first line is a section's."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:toml)?\n(\[+[a-z.]+\]+\n.*?)```", text, re.DOTALL)
    found = [tomllib.loads(block) for block in blocks]
    return [values for values in found if values.keys() & Settings.model_fields.keys()]


def test_settings_are_named() -> None:
    assert sum(len(named(page)) for page in PAGES) >= 60
    assert sum(len(examples(page)) for page in PAGES) >= 8


def test_every_setting_exists() -> None:
    missing = []
    for page, name in ((p, n) for p in PAGES for n in named(p)):
        section, key = name.split(".")
        model = next(_models(Settings.model_fields[section].annotation))
        if key not in model.model_fields:
            missing.append(f"{page.name}: {name}")
    assert missing == []


def test_every_example_has_known_keys() -> None:
    unknown_keys = [
        f"{page.name}: {name}"
        for page in PAGES
        for values in examples(page)
        for name in unknown(Settings, values)
    ]
    assert unknown_keys == []


def test_an_unknown_key_is_found() -> None:
    values = {"web": {"site_name": "x", "help_links": [{"titel": "y"}]}, "wib": {}}
    assert unknown(Settings, values) == ["web.help_links.titel", "wib"]
