"""A wheel contains the templates and apps of its version, and works without a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from portal.config.sessions import BUNDLED
from tests.paths import ROOT

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, since setuptools leaves files in the folder that it builds."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
         "--", "portal", "apps", "templates", "pyproject.toml", "README.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = [name for name in listed.split("\0") if name and os.path.lexists(ROOT / name)]
    subprocess.run(
        ["tar", "-C", str(ROOT), "-cf", str(source / "all.tar"), *sorted(set(names))], check=True
    )
    subprocess.run(["tar", "-C", str(source), "-xf", str(source / "all.tar")], check=True)
    subprocess.run(
        [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index",
         "--wheel-dir", str(out), str(source)],
        check=True,
    )  # fmt: skip
    (built,) = out.glob("*.whl")
    return built


def test_it_contains_templates_and_apps(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("templates", "apps"):
        inside = f"portal/data/{folder}/"
        found = {name.removeprefix(inside) for name in names if name.startswith(inside)}
        assert found == files(ROOT / folder)
    assert not [name for name in names if name.startswith(("templates/", "apps/", "tests/"))]


def test_an_installed_wheel_renders_and_lists_apps(wheel: Path, tmp_path: Path) -> None:
    target, config = tmp_path / "site", tmp_path / "slipway.toml"
    install = ["install", "--no-deps", "--no-index", "--target", str(target), str(wheel)]
    subprocess.run([*PIP, *install], check=True)
    config.write_text(f"[state]\ndirectory = '{tmp_path}/state'\nrun = '{tmp_path}/run'\n")
    code = (
        f"import sys; sys.path.insert(0, {str(target)!r}); import portal; "
        f"assert portal.__file__.startswith({str(target)!r}); "
        "from portal.adapters.catalog import FolderCatalog; from portal.cli.main import main; "
        "from portal.config import load_settings; s = load_settings(sys.argv[2]).sessions; "
        "print(*FolderCatalog(s.app_folders, s.images)().apps); "
        "sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, "--config", str(config), "render", "haproxy"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    apps, _, rendered = done.stdout.partition("\n")
    assert set(apps.split()) == {p.name for p in (ROOT / "apps").iterdir() if p.is_dir()}
    assert "routes.map" in rendered


def test_in_a_checkout_they_are_the_folders_themselves() -> None:
    assert (BUNDLED / "templates").samefile(ROOT / "templates")
    assert (BUNDLED / "apps").samefile(ROOT / "apps")
