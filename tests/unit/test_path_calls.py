"""The check that refuses new calls by path (tests/path_calls.py)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests import path_calls
from tests.path_calls import TABLE, all_path_calls, problems

FILE = "portal/node/file_server/new.py"


def names(text: str) -> list[str]:
    """What is noted in a module's source."""
    return [call.name for call in path_calls.path_calls(text, FILE)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import os\nos.chmod(path, 0o644)", "os.chmod"),
        ("import os as system\nsystem.open(b'x', 0, dir_fd=folder)", "os.open"),
        ("import os.path\nos.path.exists(path)", "os.path.exists"),
        ("from os import path as p\np.isdir(x)", "os.path.isdir"),
        ("from os.path import realpath\nrealpath(x)", "os.path.realpath"),
        ("from os import unlink as forget\nforget(x)", "os.unlink"),
        ("import os\nlist(map(os.unlink, names))", "os.unlink"),
        ("import os\nos.execve(path, [], {})", "os.execve"),
        ("import shutil\nshutil.copystat(a, b)", "shutil.copystat"),
        ("import tempfile\ntempfile.mkdtemp()", "tempfile.mkdtemp"),
        ("from glob import glob\nglob('*')", "glob.glob"),
        ("with open(path) as file: pass", "open"),
        ("import io\nio.open(path)", "io.open"),
        ("from pathlib import Path\nPath(x).open()", "Path.open"),
        ("from pathlib import Path\nPath(x).replace(y)", "Path.replace"),
        ("from pathlib import Path\nmap(Path.exists, paths)", "Path.exists"),
        ("from pathlib import Path\ndef a(p: Path): return p.stat().st_size", "Path.stat"),
        ("def a(folder): return (folder / 'x').read_text()", "Path.read_text"),
        ("def a(entry): entry.is_dir(follow_symlinks=False)", "Path.is_dir"),
    ],
)
def test_a_call_by_path_is_noted(text: str, name: str) -> None:
    assert names(text) == [name]


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.fstat(fd), os.fchmod(fd, 0), os.read(fd, 1), os.close(fd), os.fdopen(fd)",
        "import os\nos.path.join(a, b), os.path.dirname(a), os.fsencode(a), os.O_PATH",
        "from portal.node.file_server import at\nat.rename(a, b, c, d), at.unlink(a, b)",
        "from portal.node.file_server.at import unlink\nunlink(a, b)",
        "'text'.replace('a', 'b'), place.status(), registry.resolve(x), roots.open(x)",
        "import glob\nglob.escape(x)",
        "from pathlib import Path\n'text'.replace('a', 'b')",
        "import shutil",
    ],
)
def test_what_takes_no_path_is_not(text: str) -> None:
    assert names(text) == []


def test_a_call_is_named_by_its_function() -> None:
    text = (
        "import os\nclass A:\n    def b(self):\n        def c(): os.stat(1)\n        os.lstat(2)\n"
    )
    found = [(call.function, call.name, call.line) for call in path_calls.path_calls(text, FILE)]
    assert found == [("A.b.c", "os.stat", 4), ("A.b", "os.lstat", 5)]


def table(*calls: str, why: str = "only root can write there") -> dict[str, object]:
    return {"reason": [{"why": why, "calls": list(calls)}]}


def test_each_call_needs_its_reason_and_each_reason_a_call() -> None:
    calls = path_calls.path_calls("import os\ndef a(): os.stat(x), os.chmod(x, 0)\n", FILE)
    assert problems(calls, table(f"{FILE} a os.stat os.chmod")) == []
    assert problems(calls, table(f"{FILE} *")) == []
    assert problems(calls, table(f"{FILE} * os.chmod os.stat")) == []
    (wrong,) = problems(calls, table(f"{FILE} a os.stat"))
    assert wrong == f"{FILE}:2: os.chmod in a has no row in path_calls.toml"
    (wrong,) = problems(calls, table(f"{FILE} a os.stat os.chmod os.chown"))
    assert wrong == f"path_calls.toml: {FILE} a os.chown fits no call any more"
    assert len(problems(calls, table(f"{FILE} b *"))) == 3


def test_a_reason_says_something() -> None:
    with pytest.raises(ValueError, match="without words"):
        problems([], table(f"{FILE} *", why=" "))


def test_a_new_call_in_the_tree_is_refused(tmp_path: Path) -> None:
    known = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    before = list(all_path_calls())
    assert len(before) > 100
    assert problems(before, known) == []
    for folder in path_calls.FOLDERS:
        place = tmp_path / folder
        place.mkdir(parents=True)
        (place / "new.py").write_text("import os\nos.chmod('x', 0o777)\n")
    new = list(all_path_calls(tmp_path))
    assert [call.file for call in new] == [f"{folder}/new.py" for folder in path_calls.FOLDERS]
    assert problems([*before, *new], known) == [
        f"{call} has no row in {TABLE.name}" for call in new
    ]
