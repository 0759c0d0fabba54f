"""The programs that the benchmark of the list runs in the portal's container, which mypy skips."""

from __future__ import annotations

import ast
import importlib

import pytest

from bench import list as bench_list


@pytest.mark.parametrize("program", ["FILL", "EMPTY", "LOOK"])
def test_what_a_program_imports_exists(program: str) -> None:
    tree = ast.parse(getattr(bench_list, program))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert imports
    for node in imports:
        module = importlib.import_module(node.module or "")
        for name in node.names:
            assert hasattr(module, name.name) or importlib.import_module(
                f"{module.__name__}.{name.name}"
            )
