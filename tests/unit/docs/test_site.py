"""The documentation as a site: it builds without a warning, and has what the code has."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from portal.config.settings import Settings
from portal.web.api.openapi import document
from tests.support.paths import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    """docs/hooks.py, which MkDocs loads by its path."""
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does; a broken link or a page without a menu entry fails."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_site_and_its_menu(site: Path) -> None:
    names = [
        page.relative_to(ROOT / "docs").with_suffix("").as_posix().removesuffix("index")
        for page in PAGES
    ]
    without_title = [n for n in names if "<h1" not in (site / n / "index.html").read_text()]
    assert without_title == []
    front = (site / "index.html").read_text()
    assert [name for name in names if name and f'href="{name}/"' not in front] == []


def test_every_setting_is_described(site: Path) -> None:
    text = (site / "reference" / "settings" / "index.html").read_text()
    for section in Settings.model_fields:
        assert f"[{section}]" in text


def test_every_operation_is_described(site: Path) -> None:
    text = (site / "reference" / "api" / "index.html").read_text()
    for path, operations in document("https://slipway.example.org")["paths"].items():
        for method in operations.keys() & {"get", "post", "put", "patch", "delete"}:
            assert f"<code>{method.upper()} {path}</code>" in text


def test_a_required_field_of_a_body_is_marked(hooks: ModuleType) -> None:
    page = hooks.api_page(document("https://slipway.example.org"))
    folders = page.partition("### `POST /folders`")[2].partition("\n### ")[0]
    assert "| `name` | body, required | string |" in folders


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text()
        )
        assert loaded == [], page
