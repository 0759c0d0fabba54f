"""Refuses new calls that take a path, in the programs that run as a user or as root on the cluster.

Between two calls by name, whoever may write in one of the path's folders can exchange what the name
leads to. So each such call has a reason in path_calls.toml, which says who can write there; a new
call, and a reason that no call needs any more, are errors. Not seen are the paths of sockets,
commands and C functions.

    python -m tests.path_calls           prints what is wrong, and exits with 1 then
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "path_calls.toml"
FOLDERS = ("portal/batch", "portal/file_server", "portal/gpu", "portal/runner")
ALL = "*"
MODULE = "<module>"
"""Stands for code outside of functions."""

_OS = (
    "access chdir chflags chmod chown chroot execl execle execlp execlpe execv execve execvp "
    "execvpe fwalk getxattr lchflags lchmod lchown link listdir listxattr lstat makedirs "
    "mkdir mkfifo mknod open pathconf posix_spawn posix_spawnp readlink remove removedirs "
    "removexattr rename renames replace rmdir scandir setxattr spawnl spawnle spawnlp "
    "spawnlpe spawnv spawnve spawnvp spawnvpe stat statvfs symlink truncate unlink utime walk"
).split()
_OS_PATH = (
    "exists getatime getctime getmtime getsize isdir isfile isjunction islink ismount lexists "
    "realpath samefile"
).split()
FUNCTIONS = frozenset({"open", "io.open", "glob.glob", "glob.iglob"}) | {
    *(f"os.{name}" for name in _OS),
    *(f"os.path.{name}" for name in _OS_PATH),
}
MODULES = ("shutil.", "tempfile.")
"""All of their functions take or choose a path."""
METHODS = frozenset(
    "chmod exists glob hardlink_to is_block_device is_char_device is_dir is_fifo is_file is_mount "
    "is_socket is_symlink iterdir lchmod lstat mkdir open read_bytes read_text readlink rename "
    "replace resolve rglob rmdir samefile stat symlink_to touch unlink walk write_bytes "
    "write_text".split()
)
"""Of pathlib.Path."""
AMBIGUOUS = frozenset("exists glob open rename replace resolve stat walk".split())
"""Other objects have methods of these names: looked at only in modules that import pathlib."""
DESCRIPTORS_ONLY = "portal.file_server.at"
"""Its functions take an open folder and one name."""


@dataclass(frozen=True, order=True)
class PathCall:
    """A function that takes a path, and where it is used."""

    file: str
    function: str
    """Such as Class.method."""
    name: str
    line: int = field(compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name} in {self.function}"


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str) -> None:
        self._file = file
        self._imported: dict[str, str] = {}
        self._stack: list[str] = []
        self.calls: list[PathCall] = []

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self._imported[alias.asname or name] = name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._imported[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"

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

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if (
            isinstance(called, ast.Attribute)
            and called.attr in METHODS
            and not self._is_known(called)
            and self._is_of_path(called.attr, node)
        ):
            self._note(f"Path.{called.attr}", called)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Also without a call: a function may be passed to another one."""
        name = self._dotted(node)
        method = name.removeprefix("pathlib.Path.")
        if name in FUNCTIONS or name.startswith(MODULES):
            self._note(name, node)
        elif method != name and method in METHODS:
            self._note(f"Path.{method}", node)
        else:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        name = self._imported.get(node.id, node.id)
        if name in FUNCTIONS or name.startswith(MODULES):
            self._note(name, node)

    def _is_of_path(self, method: str, call: ast.Call) -> bool:
        if method in AMBIGUOUS and not any(
            name.partition(".")[0] == "pathlib" for name in self._imported.values()
        ):
            return False
        # That of text takes two.
        return method != "replace" or len(call.args) == 1

    def _is_known(self, node: ast.Attribute) -> bool:
        """Whether this is a function of a module: `visit_Attribute` judges it."""
        name = self._dotted(node)
        module = name.rpartition(".")[0]
        return module in ("os", "io", "glob", "pathlib.Path", DESCRIPTORS_ONLY) or (
            f"{module}." in MODULES
        )

    def _dotted(self, node: ast.expr) -> str:
        """Such as os.path.exists, whatever it was imported as; "" for what has no name."""
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            before = self._dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        return ""

    def _note(self, name: str, node: ast.expr) -> None:
        place = ".".join(self._stack) or MODULE
        self.calls.append(PathCall(self._file, place, name, node.lineno))


def path_calls(text: str, file: str) -> list[PathCall]:
    """The calls in a module's source that take a path."""
    finder = _Finder(file)
    finder.visit(ast.parse(text))
    return finder.calls


def all_path_calls(root: Path = ROOT) -> Iterator[PathCall]:
    """Those in all folders."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            yield from path_calls(path.read_text(encoding="utf-8"), str(path.relative_to(root)))


def rows(table: Mapping[str, object]) -> Iterator[tuple[str, str, frozenset[str]]]:
    """File, function and calls of each row; raises ValueError for one without a reason."""
    reasons = table.get("reason")
    for reason in reasons if isinstance(reasons, list) else []:
        if not str(reason.get("why", "")).strip():
            raise ValueError(f"a reason without words: {reason}")
        for row in reason["calls"]:
            file, function, *names = str(row).split()
            yield file, function, frozenset(names or [ALL])


def problems(calls: Iterator[PathCall] | list[PathCall], table: Mapping[str, object]) -> list[str]:
    """Calls without a reason, and rows, or names in them, without a call."""
    known = list(rows(table))
    unused = {(file, function, name) for file, function, names in known for name in names}
    wrong = []
    for call in calls:
        fitting = {
            (file, function, name)
            for file, function in ((call.file, call.function), (call.file, ALL))
            for name in (call.name, ALL)
        } & {(file, function, name) for file, function, names in known for name in names}
        unused -= fitting
        if not fitting:
            wrong.append(f"{call} has no reason in {TABLE.name}")
    wrong += [f"{TABLE.name}: {' '.join(row)} fits no call any more" for row in sorted(unused)]
    return wrong


def main() -> int:
    """Print all problems."""
    wrong = problems(all_path_calls(), tomllib.loads(TABLE.read_text(encoding="utf-8")))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
