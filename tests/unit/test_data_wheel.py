"""A wheel contains the templates and apps of its version, and works without a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from portal.config.sessions import BUNDLED
from portal.version import described, release
from tests.support.paths import ROOT

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, since setuptools leaves files in what it builds; without bundles."""
    source = tmp_path_factory.mktemp("source")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
         "--", "portal", "apps", "templates", "pyproject.toml", "setup.py", "README.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = [name for name in listed.split("\0") if name and os.path.lexists(ROOT / name)]
    subprocess.run(
        ["tar", "-C", str(ROOT), "-cf", str(source / "all.tar"), *sorted(set(names))], check=True
    )
    subprocess.run(["tar", "-C", str(source), "-xf", str(source / "all.tar")], check=True)
    shutil.rmtree(source / "portal" / "web" / "static" / "built", ignore_errors=True)
    return source


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index",
         "--wheel-dir", str(out), str(source)],
        env={**os.environ, "SLIPWAY_REVISION": "1a2b3c4d5e6f"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With an empty manifest in the place of all bundles."""
    out, built = tmp_path_factory.mktemp("wheel"), source / "portal" / "web" / "static" / "built"
    built.mkdir()
    (built / "manifest.json").write_text("{}")
    done = build(source, out)
    shutil.rmtree(built)
    assert done.returncode == 0, done.stderr
    (made,) = out.glob("*.whl")
    return made


def test_a_build_without_bundles_fails(source: Path, tmp_path: Path) -> None:
    done = build(source, tmp_path)
    assert done.returncode != 0
    assert "run `make assets` first" in done.stderr
    assert not list(tmp_path.iterdir())


def test_its_version_is_that_of_pyproject(wheel: Path) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert wheel.name == f"slipway-{declared}-py3-none-any.whl"
    assert f"\n## {declared} (" in (ROOT / "CHANGELOG.md").read_text()


def test_it_says_which_commit_it_is_of(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extract("portal/data/revision", tmp_path)
    assert described(tmp_path / "portal/data/revision") == f"{release()} (1a2b3c4d5e6f)"
    assert described(tmp_path / "none") == release()


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
