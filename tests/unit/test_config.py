"""The settings: each described, a wrong one named."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from portal.config import Settings, SettingsError, load_settings

ROOT = Path(__file__).parents[2]


def models(model: type[BaseModel]) -> list[type[BaseModel]]:
    """A model and the models in it."""
    inner = [
        field.annotation
        for field in model.model_fields.values()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    ]
    return [model, *(deeper for found in inner for deeper in models(found))]


@pytest.mark.parametrize("model", models(Settings), ids=lambda model: model.__name__)
def test_every_setting_is_described(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        assert field.description, f"{model.__name__}.{name} has no description"


def write(tmp_path: Path, text: str) -> str:
    """A settings file."""
    file = tmp_path / "slipway.toml"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[web]\npublic = 1", "web.public"),
        ("[slurm]\npoll_seconds = 0", "slurm.poll_seconds"),
        ("[sessions]\ngateway_ports = 5", "sessions.gateway_ports"),
        ("[sessions]\nstorage = '$HOME/x'", "sessions.storage"),
        ("[sessions]\ndotfiles = ['.x', '../.y']", "sessions.dotfiles.1"),
        ("[sessions]\ndotfiles = ['.ssh/..']", "sessions.dotfiles.0"),
        ("[sessions]\ndotfiles = ['.vim rc']", "sessions.dotfiles.0"),
        ("[web", "slipway.toml"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        load_settings(write(tmp_path, text))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(SettingsError, match=r"/nowhere/slipway\.toml"):
        load_settings("/nowhere/slipway.toml")


def test_the_port_can_come_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPWAY_PUBLIC_URL", "http://localhost:9000")
    settings = load_settings(write(tmp_path, "[web]\npublic_url = 'http://localhost:8080'"))
    assert settings.web.app_url("abc") == "http://abc.localhost:9000"


def test_the_clusters_own_settings_are_good() -> None:
    assert load_settings(str(ROOT / "cluster" / "etc" / "slipway.toml")).login.host == "login"
