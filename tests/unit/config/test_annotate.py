"""`slipway config` prints a settings file that is complete and valid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from portal.cli.main import main
from portal.config import GpuKindSettings, Settings, SettingsError, load_settings
from portal.config.annotate import annotated
from portal.config.sessions import BUNDLED

SETTING = re.compile(r"^#(\[\[.*\]\]|[a-z_]+ = .*)$", re.MULTILINE)
REQUIRED = {"memory": '"80g"', "title": '"Wiki"', "url": '"https://wiki.example.org"'}
NOT_SET = {
    "apps_ports": "[10000, 10199]",
    "apps": f'"{BUNDLED}/apps"',
    "templates": f'"{BUNDLED}/templates"',
}


def load(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "slipway.toml"
    file.write_text(text)
    return load_settings(str(file))


def uncommented(text: str) -> str:
    """The file with every setting uncommented, those without a default filled in."""

    def fill(match: re.Match[str]) -> str:
        name, _, value = match[1].partition(" = ")
        known = {"# required": REQUIRED, "# not set": NOT_SET}
        return f"{name} = {known[value.strip()][name]}" if value.strip() in known else match[1]

    return SETTING.sub(fill, text)


def test_unchanged_it_gives_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, annotated()) == Settings()


def test_every_line_gives_its_default(tmp_path: Path) -> None:
    settings = load(tmp_path, uncommented(annotated()))
    kind = GpuKindSettings.model_validate({"memory": "80g"})
    expected = Settings()
    assert settings.gpu.kinds == (kind,)
    assert [link.title for link in settings.web.help_links] == ["Wiki"]
    assert settings.model_copy(update={"gpu": expected.gpu}) == expected.model_copy(
        update={
            "web": expected.web.model_copy(
                update={"apps_ports": (10000, 10199), "help_links": settings.web.help_links}
            )
        }
    )


def test_a_required_key_is_marked(tmp_path: Path) -> None:
    text = annotated()
    assert re.findall(r"^#(\w+) = +# required$", text, re.MULTILINE) == ["title", "url", "memory"]
    with pytest.raises(SettingsError, match="memory"):
        load(tmp_path, uncommented(text).replace('memory = "80g"\n', ""))


def keys(model: type[BaseModel]) -> set[str]:
    """All keys of a model and its sub-models."""
    found = set()
    for name, field in model.model_fields.items():
        found.add(name)
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                found |= keys(inner)
    return found


def test_every_key_has_its_description() -> None:
    text = annotated()
    written = set(re.findall(r"^#?(?:\[\[?(?:\w+\.)?)?(\w+)(?: = .*|\]+)$", text, re.MULTILINE))
    assert written == keys(Settings)
    blocks = [block for block in text.split("\n\n")[1:] if SETTING.search(block)]
    assert all(block.lstrip("\n").startswith("# ") for block in blocks)


def test_lines_are_short_and_name_no_folder_of_this_machine() -> None:
    text = annotated()
    assert max(map(len, text.splitlines())) <= 100
    assert str(BUNDLED) not in text


def test_the_command_needs_no_settings_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPWAY_CONFIG", "/nowhere/slipway.toml")
    assert main(["config"]) == 0
    assert capsys.readouterr().out == annotated()
