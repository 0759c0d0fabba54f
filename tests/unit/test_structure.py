"""The rules for folders in ARCHITECTURE.md, as far as a program can check them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT

UNIT = ROOT / "tests" / "unit"
PORTAL = ROOT / "portal"
OTHERS = {"bench", "cluster", "deploy", "docs", "gres", "images", "oracle", "postgresql"}
OTHERS |= {"templates"}
"""Folders of unit tests for files outside of portal/, or of several of its folders."""
OF_TESTS = {Path(f"test_{name}.py") for name in ("structure", "path_calls", "waits")}
OF_TESTS.add(Path("web/test_transactions.py"))
"""Tests of the sources themselves."""
MOST_LINES_OF_FUNCTION = 50


def sources() -> list[Path]:
    """The portal's own modules; migrations are never changed."""
    found = PORTAL.rglob("*.py")
    return [p for p in found if "versions" not in p.parts and "node_modules" not in p.parts]


def unit_tests() -> list[Path]:
    found = [p.relative_to(UNIT) for p in UNIT.rglob("test_*.py")]
    return sorted(p for p in found if p.parts[0] not in OTHERS and p not in OF_TESTS)


def test_unit_tests_mirror_the_portal() -> None:
    """tests/unit/a/test_b.py and test_b_more.py test portal/a/b.py, or the folder portal/a/b/."""
    assert [str(test) for test in unit_tests() if not has_module(test)] == []


def has_module(test: Path) -> bool:
    parts = test.stem.removeprefix("test_").split("_")
    folder = PORTAL / test.parent
    names = ("_".join(parts[:count]) for count in range(1, len(parts) + 1))
    return any((folder / f"{name}.py").exists() or (folder / name).is_dir() for name in names)


def test_functions_are_short() -> None:
    long = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MOST_LINES_OF_FUNCTION:
                    long.append(f"{path.relative_to(ROOT)}:{node.name}")
    assert long == []


def test_only_transitions_write_a_state() -> None:
    """mypy checks the same by the types of SessionStore; this also finds casts and strings."""
    words = re.compile(r"\bstate=State\.|[\"']state[\"']\s*:\s*State\.|\bChanges\(")
    allowed = {"portal/core/session/transitions.py", "portal/core/session/session.py"}
    found = {
        str(path.relative_to(ROOT))
        for path in sources()
        if words.search(path.read_text(encoding="utf-8"))
    }
    assert found <= allowed


def test_no_service_is_reached_through_another() -> None:
    """`services().a.b.c` reaches through `a`; settings are values and may be read at any depth."""
    reach = re.compile(r"\bservices(?:\(\))?\.(?!settings\b)(\w+)\.(\w+)\.\w+")
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sources()
        for match in reach.finditer(path.read_text(encoding="utf-8"))
        if not match[0].startswith("services.exit")
    ]
    assert found == []


def test_helpers_of_tests_are_in_modules_of_their_own() -> None:
    """No module imports from a test module: helpers live in tests/support.

    tests/unit/postgresql collects the tests of other modules a second time, and only that.
    """
    tests = {path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py")}
    imports = {
        f"{path}: {module}.{name}"
        for path in tests
        for module, name in imported_names((ROOT / path).read_text(encoding="utf-8"))
        if ".test_" in f".{module}.{name}"
        and module.startswith("tests.")
        and not ("postgresql" in path.parts and name.startswith(("*", "test_")))
    }
    assert imports == set()


def imported_names(source: str) -> Iterator[tuple[str, str]]:
    """Every (module, name) that a source imports, wherever it does; `import a.b` has no name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def test_files_named_in_documents_exist() -> None:
    """Files and folders of the portal named in ARCHITECTURE.md and its pages exist."""
    pages = [
        ROOT / "ARCHITECTURE.md",
        ROOT / "DECISIONS.md",
        *(ROOT / "docs" / "developers").glob("*.md"),
    ]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    folders = "core|services|adapters|store|node|web|cli|hub|templates|tests"
    names = set(re.findall(rf"`((?:{folders})/[\w/.-]+)`", text))
    assert len(names) > 50
    missing = {name for name in names if not any((base / name).exists() for base in (PORTAL, ROOT))}
    assert missing == set()
