"""COPY and MOVE onto something that exists, killed before each call that changes names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.node.file_server.operations.records import Records
from portal.node.file_server.roots import Root, Roots

PROGRAM = """
import json, os, signal, sys
from portal.node.file_server import at, renames
from portal.node.file_server.dav import tree
from portal.node.file_server.operations import records
from portal.node.file_server.operations.protected import Protected
from portal.node.file_server.location import parse
from portal.node.file_server.roots import Root, Roots

left = 0

def counted(function):
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

def unsupported(*_):
    raise OSError(22, "as on NFS")

def run(home, kind):
    roots = Roots({"home": Root("home", home)})
    noted = records.Records(home, "x")
    with (
        roots.resolve(parse("home/source"), follow=False) as source,
        roots.resolve(parse("home/to/target"), follow=False) as target,
    ):
        protected = Protected(roots, roots.deadlines)
        transfer = tree.Transfer(
            source, target, source.status(), target.status(), True, protected, noted
        )
        tree.move(transfer) if kind == "move" else tree.copy(transfer, alone=kind == "alone")

folder, kind, file_system = sys.argv[1:]
renames._renameat2 = unsupported if file_system == "nfs" else counted(renames._renameat2)
for name in "rename link unlink make_folder remove_folder create symlink".split():
    setattr(at, name, counted(getattr(at, name)))
for number in range(1, 100):
    child = os.fork()
    if not child:
        left = number
        run(os.path.join(folder, str(number)), kind)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status != signal.SIGKILL:
        print(json.dumps([number, status]))
        break
"""
MOST = 40
NEW, OLD = {"new": "new", "deep/new": "new"}, {"old": "old", "deep/old": "old"}


def make(path: Path, contents: dict[str, str] | str) -> None:
    if isinstance(contents, str):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents)
        return
    for name, text in contents.items():
        make(path / name, text)


def contents_of(path: Path) -> dict[str, str] | str | None:
    if path.is_dir():
        files = (each for each in path.rglob("*") if each.is_file())
        return {str(each.relative_to(path)): each.read_text() for each in files}
    return path.read_text() if path.exists() else None


@pytest.mark.parametrize("file_system", ["local", "nfs"])
@pytest.mark.parametrize("kind", ["copy", "move", "alone"])
@pytest.mark.parametrize(
    ("new", "old"), [(NEW, OLD), (NEW, "old"), ("new", OLD)], ids=["folders", "file", "folder"]
)
def test_the_old_one_is_there_until_the_new_one_is(
    tmp_path: Path,
    kind: str,
    new: dict[str, str] | str,
    old: dict[str, str] | str,
    file_system: str,
) -> None:
    copied = {} if kind == "alone" and isinstance(new, dict) else new
    for number in range(1, MOST):
        make(tmp_path / f"{number}/source", new)
        make(tmp_path / f"{number}/to/target", old)
    words = [sys.executable, "-c", PROGRAM, str(tmp_path), kind, file_system]
    done = subprocess.run(words, timeout=60, check=True, stdout=subprocess.PIPE)
    last, status = json.loads(done.stdout)
    assert status == 0
    assert last > 3
    for number in range(1, last):
        home = tmp_path / str(number)
        seen = [contents_of(home / "to/target"), contents_of(home / "source")]
        seen += [contents_of(path) for path in (home / "to").glob(".slipway-*")]
        seen += [contents_of(path) for path in (home / "to").glob(".slipway-*.old/target")]
        assert old in seen or copied in seen, (number, seen)
        assert kind != "move" or new in seen, (number, seen)
        check_after_the_next_start(home, kind, new, copied, old)
    home = tmp_path / str(last)
    assert contents_of(home / "to/target") == copied
    assert os.listdir(home / "to") == ["target"]
    assert (home / "source").exists() == (kind != "move")


def check_after_the_next_start(
    home: Path, kind: str, new: object, copied: object, old: object
) -> None:
    roots = Roots({"home": Root("home", str(home))})
    list(Records(str(home), "x").earlier(roots))
    target, source = contents_of(home / "to/target"), contents_of(home / "source")
    assert os.listdir(home / "to") == ["target"], home
    assert target in (old, copied), home
    if kind != "move" or target == old:
        assert source == new, home
    else:  # the names were exchanged, or a file has both names, just before
        assert source in (None, old, new), home
