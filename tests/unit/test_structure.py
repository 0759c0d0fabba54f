"""What ARCHITECTURE.md says of the folders, where a program can check it."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.paths import ROOT

UNIT = ROOT / "tests" / "unit"
PORTAL = ROOT / "portal"
OTHERS = {"bench", "cluster", "docs", "gres", "images", "slurm_plugins", "templates"}
"""Folders of unit tests for what lies beside portal/."""
MOST_MODULES = 13
MOST_LINES = 350
MOST_LINES_OF_FUNCTION = 50
ALONE = {"runner", "gpu"}
"""Programs that travel to the compute nodes by themselves."""


def sources() -> list[Path]:
    """The portal's own modules; migrations are history."""
    found = PORTAL.rglob("*.py")
    return [p for p in found if "versions" not in p.parts and "node_modules" not in p.parts]


def unit_tests() -> list[Path]:
    found = [p.relative_to(UNIT) for p in UNIT.rglob("test_*.py")]
    return sorted(p for p in found if p.parts[0] not in OTHERS and p != Path("test_structure.py"))


@pytest.mark.parametrize("test", unit_tests(), ids=str)
def test_unit_tests_mirror_the_portal(test: Path) -> None:
    """tests/unit/a/test_b.py and test_b_more.py test portal/a/b.py, or the folder portal/a/b/."""
    name = test.stem.removeprefix("test_")
    parts = name.split("_")
    stems = {"_".join(parts[:count]) for count in range(1, len(parts) + 1)}
    folder = PORTAL / test.parent
    assert folder.is_dir()
    found = {p.stem for p in folder.glob("*.py")} | {p.name for p in folder.iterdir() if p.is_dir()}
    assert stems & found, f"no module of {folder.relative_to(ROOT)} is named like it"


def test_folders_have_few_modules() -> None:
    modules = Counter(p.parent for p in sources() if p.name != "__init__.py")
    large = {
        str(folder.relative_to(ROOT)): count
        for folder, count in modules.items()
        if count > MOST_MODULES and folder.name not in ALONE
    }
    assert large == {}
    assert modules[PORTAL] <= 9


def test_files_and_functions_are_short() -> None:
    long = []
    for path in sources():
        text = path.read_text(encoding="utf-8")
        name = str(path.relative_to(ROOT))
        if text.count("\n") > MOST_LINES:
            long.append(name)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MOST_LINES_OF_FUNCTION:
                    long.append(f"{name}:{node.name}")
    assert long == []
