"""Calls in the portal's source that a table beside the tests must explain.

A table (TOML) has rows "FILE FUNCTION CALL…", grouped under what is true of them. FUNCTION is such
as Class.method, and may be "*"; a row without a CALL stands for all calls there. A call without a
row, and a row without a call, are errors.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

ALL = "*"
MODULE = "<module>"
"""Stands for code outside of functions."""


@dataclass(frozen=True, order=True)
class Call:
    """A call, and where it is."""

    file: str
    function: str
    """Such as Class.method."""
    name: str
    line: int = field(compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name} in {self.function}"


Row = tuple[str, str, str]
"""File, function and call."""


class Finder(ast.NodeVisitor):
    """Walks a module's source; a subclass notes what it looks for."""

    def __init__(self, file: str) -> None:
        self.calls: list[Call] = []
        self.imported: dict[str, str] = {}
        self._file = file
        self._stack: list[str] = []

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self.imported[alias.asname or name] = name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.imported[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_inside(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_inside(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_inside(node)

    def _visit_inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._stack.append(node.name)
        self.generic_visit(node)
        self._stack.pop()

    def dotted(self, node: ast.expr) -> str:
        """Such as os.path.exists, whatever it was imported as; "" for what has no name."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        return ""

    def note(self, name: str, node: ast.expr) -> None:
        """Add a call."""
        place = ".".join(self._stack) or MODULE
        self.calls.append(Call(self._file, place, name, node.lineno))


def calls_of(finder: type[Finder], text: str, file: str) -> list[Call]:
    """What a finder notes in a module's source."""
    found = finder(file)
    found.visit(ast.parse(text))
    return found.calls


def calls_in(finder: type[Finder], folders: Sequence[str], root: Path = ROOT) -> Iterator[Call]:
    """The same in all modules of folders."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            yield from calls_of(finder, text, str(path.relative_to(root)))


def rows(calls: Iterable[object]) -> Iterator[Row]:
    """The rows of a group."""
    for line in calls:
        file, function, *names = str(line).split()
        for name in names or [ALL]:
            yield file, function, name


def problems(calls: Iterable[Call], known: Iterable[Row], table: str) -> list[str]:
    """Calls without a row, and rows without a call."""
    known = set(known)
    unused = set(known)
    wrong = []
    for call in calls:
        fitting = {
            (file, function, name)
            for file, function in ((call.file, call.function), (call.file, ALL))
            for name in (call.name, ALL)
        } & known
        unused -= fitting
        if not fitting:
            wrong.append(f"{call} has no row in {table}")
    wrong += [f"{table}: {' '.join(row)} fits no call any more" for row in sorted(unused)]
    return wrong


def print_problems(
    check: Callable[[Iterable[Call], Mapping[str, Any]], list[str]],
    calls: Iterable[Call],
    table: Path,
) -> int:
    """Print what is wrong with a table; the exit code."""
    wrong = check(calls, tomllib.loads(table.read_text(encoding="utf-8")))
    for line in wrong:
        print(line)
    return 1 if wrong else 0
