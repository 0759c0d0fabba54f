"""A site whose settings are right, except for its login node, to be made wrong in one place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portal.cli.main import main


class Site:
    """Its settings, by section, and what `slipway check` says about them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        known = folder / "known_hosts"
        known.touch()
        for name in ("images", "apps"):
            (folder / name).mkdir()
        self.settings: dict[str, dict[str, object]] = {
            "web": {},
            "login": {"host": "127.0.0.1", "port": 1, "known_hosts": str(known)},
            "sessions": {
                "images": str(folder / "images"),
                "callback": "https://localhost:8443",
                "toolkit": str(folder / "toolkit.sqsh"),
            },
            "state": {"directory": str(folder / "state"), "run": str(folder / "run")},
            "slurm": {},
        }
        self.file = folder / "slipway.toml"

    def write(self) -> None:
        """Write the settings file."""
        lines = []
        for section, values in self.settings.items():
            lines.append(f"[{section}]")
            lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        self.file.write_text("\n".join(lines) + "\n")

    def run(self, *words: str) -> int:
        """Run one command."""
        return main(["--config", str(self.file), *words])

    def init(self) -> Site:
        """Make keys and database."""
        self.write()
        assert self.run("init") == 0
        self._capsys.readouterr()
        return self

    def check(self, **changes: object) -> str:
        """What `slipway check` prints with these settings, as web__listen="…"."""
        for key, value in changes.items():
            section, _, name = key.partition("__")
            self.settings[section][name] = value
        self.write()
        self.run("check")
        captured = self._capsys.readouterr()
        assert "Traceback" not in captured.err
        return captured.out + captured.err
