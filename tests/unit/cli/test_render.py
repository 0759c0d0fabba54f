"""`slipway render` prints or writes the configuration of a site's other programs."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

from portal.cli.main import main
from portal.cli.render import UNITS, front_end_hash
from tests.support.paths import TEMPLATES


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Settings that contain only the state directory."""
    file = tmp_path / "slipway.toml"
    file.write_text(f"[state]\ndirectory = {json.dumps(str(tmp_path / 'state'))}\n")
    return str(file)


def unit(text: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=False, comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys have capitals
    parser.read_string(text)
    return parser


def test_systemd_gets_one_file_for_each_unit(config: str, tmp_path: Path) -> None:
    folder = tmp_path / "units"
    for _ in range(2):
        assert main(["--config", config, "render", "systemd", "--output", str(folder)]) == 0
    assert sorted(file.name for file in folder.iterdir()) == sorted(UNITS)
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o644}
    units = {name: unit((folder / name).read_text()) for name in UNITS}
    assert all(parsed["Unit"]["Description"] for parsed in units.values())
    services = {name for name in UNITS if name.endswith(".service")}
    assert set(units["slipway.target"]["Unit"]["Wants"].split()) == services
    for name in services:
        assert units[name]["Unit"]["PartOf"] == "slipway.target"
        assert units[name]["Service"]["User"] == "slipway"
    assert str(tmp_path / "state") in units["slipway-worker.service"]["Service"]["ReadWritePaths"]


@pytest.mark.parametrize("name", [".gpu.json.new", "gpu.json"])
def test_a_link_in_the_files_place_is_not_followed(config: str, tmp_path: Path, name: str) -> None:
    """Root may write where another account can."""
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / name).symlink_to(tmp_path / "kept")
    file = tmp_path / "etc" / "gpu.json"
    assert main(["--config", config, "render", "gpu", "--output", str(file)]) == 0
    assert (tmp_path / "kept").read_text() == "kept"
    assert json.loads(file.read_text())
    assert not file.is_symlink()


def test_every_template_of_a_unit_is_rendered() -> None:
    files = (file for file in (TEMPLATES / "systemd").iterdir() if file.name != "_sandbox.j2")
    assert sorted(file.stem for file in files) == sorted(UNITS)


def test_systemd_accepts_the_units(config: str, tmp_path: Path) -> None:
    """Where systemd-analyze is installed."""
    folder = tmp_path / "units"
    main(["--config", config, "render", "systemd", "--output", str(folder)])
    for file in folder.glob("*.service"):  # the site's programs are not installed here
        program = r"^(Exec\w+)=\S+"
        file.write_text(re.sub(program, r"\1=/bin/true", file.read_text(), flags=re.MULTILINE))
    if shutil.which("systemd-analyze") is None:
        return
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, sorted(folder.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [
        line for line in done.stderr.splitlines() if str(folder) in line or "slipway" in line
    ]
    assert complaints == []


def test_without_a_folder_units_are_printed_under_their_names(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", config, "render", "systemd"]) == 0
    printed = capsys.readouterr().out
    assert [line[7:] for line in printed.splitlines() if line.startswith("# ---- ")] == list(UNITS)
    assert "--output DIR" in printed


@pytest.mark.parametrize("what", ["haproxy", "gpu"])
def test_a_written_file_equals_the_printed_one(
    config: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / what
    assert main(["--config", config, "render", what]) == 0
    printed = capsys.readouterr().out
    assert main(["--config", config, "render", what, "--output", str(file)]) == 0
    assert file.read_text() == printed
    assert file.stat().st_mode & 0o777 == 0o644
    assert capsys.readouterr().out == f"{file}\n"


def test_an_unwritable_file_is_named(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nowhere" / "haproxy.cfg"
    assert main(["--config", config, "render", "haproxy", "--output", str(file)]) == 1
    assert str(file.parent) in capsys.readouterr().err


@pytest.mark.parametrize(
    "token", ["", "short", "a" * 31, "a" * 32 + "\n" + "a" * 32, "\x00" * 32, "a" * 257]
)
def test_a_file_that_proves_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], token: str
) -> None:
    """An empty proof would be everybody's."""
    file, config = tmp_path / "token", tmp_path / "slipway.toml"
    file.write_text(f"{token}\n")
    config.write_text(
        f'[hub]\nlisten = ":8090"\nfront_end_token_file = {json.dumps(str(file))}\n'
        f"[sessions]\ntemplates = {json.dumps(str(TEMPLATES))}\n"
    )
    assert main(["--config", str(config), "render", "haproxy"]) == 1
    assert f"{file}: not one line of 32 to 256 letters and digits" in capsys.readouterr().err


def test_a_proof_is_known_by_its_hash(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a" * 64 + "\n")
    assert front_end_hash(str(file)) == hashlib.sha256(b"a" * 64).hexdigest()
    assert front_end_hash("") == ""
