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
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support import source_calls
from tests.support.paths import ROOT
from tests.support.source_calls import Call, Finder, Row, calls_in, calls_of, print_problems, rows

TABLE = ROOT / "tests" / "path_calls.toml"
FOLDERS = ("portal/node/batch", "portal/node/file_server", "portal/node/gpu", "portal/node/runner")

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
DESCRIPTORS_ONLY = "portal.node.file_server.at"
"""Its functions take an open folder and one name."""


class PathFinder(Finder):
    """Notes the calls that take a path."""

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802 - ast chooses it
        called = node.func
        if (
            isinstance(called, ast.Attribute)
            and called.attr in METHODS
            and not self._is_known(called)
            and self._is_of_path(called.attr, node)
        ):
            self.note(f"Path.{called.attr}", called)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: N802 - ast chooses it
        """Also without a call: a function may be passed to another one."""
        name = self.dotted(node)
        method = name.removeprefix("pathlib.Path.")
        if name in FUNCTIONS or name.startswith(MODULES):
            self.note(name, node)
        elif method != name and method in METHODS:
            self.note(f"Path.{method}", node)
        else:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:  # noqa: N802 - ast chooses it
        name = self.imported.get(node.id, node.id)
        if name in FUNCTIONS or name.startswith(MODULES):
            self.note(name, node)

    def _is_of_path(self, method: str, call: ast.Call) -> bool:
        if method in AMBIGUOUS and not any(
            name.partition(".")[0] == "pathlib" for name in self.imported.values()
        ):
            return False
        # That of text takes two.
        return method != "replace" or len(call.args) == 1

    def _is_known(self, node: ast.Attribute) -> bool:
        """Whether this is a function of a module: `visit_Attribute` judges it."""
        name = self.dotted(node)
        module = name.rpartition(".")[0]
        return module in ("os", "io", "glob", "pathlib.Path", DESCRIPTORS_ONLY) or (
            f"{module}." in MODULES
        )


def path_calls(text: str, file: str) -> list[Call]:
    """The calls in a module's source that take a path."""
    return calls_of(PathFinder, text, file)


def all_path_calls(root: Path = ROOT) -> Iterator[Call]:
    """Those in all folders."""
    return calls_in(PathFinder, FOLDERS, root)


def problems(found: Iterable[Call], table: Mapping[str, Any]) -> list[str]:
    """Calls without a reason, and rows without a call; ValueError for a reason without words."""
    known: set[Row] = set()
    for reason in table.get("reason", []):
        if not str(reason.get("why", "")).strip():
            raise ValueError(f"a reason without words: {reason}")
        known.update(rows(reason["calls"]))
    return source_calls.problems(found, known, TABLE.name)


def main() -> int:
    """Print all problems."""
    return print_problems(problems, all_path_calls(), TABLE)


if __name__ == "__main__":
    sys.exit(main())
