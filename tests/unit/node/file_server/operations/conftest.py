"""Operations without HTTP, also between two file systems and as an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server.deadlines import Deadlines
from portal.node.file_server.operations.fetch_rules import FetchRules
from portal.node.file_server.operations.manager import Operations
from portal.node.file_server.operations.records import Records
from portal.node.file_server.roots import Root, Roots

Operate = Callable[..., dict[str, Any]]

ORDINARY = """
import json, os, sys
from portal.node.file_server.archives.archives import send_archive
from tests.unit.node.file_server.operations.conftest import operations_of
if os.getuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
operations = operations_of({"home": sys.argv[1]})
for body in json.loads(sys.argv[2]):
    found = operations.start(body)
    assert found.over.wait(20)
    print(json.dumps(found.as_json()))
"""


def operations_of(roots: dict[str, str], rules: FetchRules | None = None) -> Operations:
    """The operations of a server with these storage areas."""
    made = Roots({name: Root(name, path) for name, path in roots.items()})
    records = Records(roots.get("home"), "test")
    return Operations(made, Deadlines(), records, rules or FetchRules())


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder on another file system than the home."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def operate(home: Path, elsewhere: Path) -> Operate:
    """Do an operation on the home and the other file system, to its end."""
    operations = operations_of({"home": str(home), "scratch": str(elsewhere)})

    def run(kind: str, items: list[str], to: str = "", **more: str) -> dict[str, Any]:
        found = operations.start({"kind": kind, "items": items, "to": to, **more})
        assert found.over.wait(30), found.as_json()
        return found.as_json()

    return run


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A home that an ordinary user can reach."""
    folder = Path(tempfile.mkdtemp())
    if os.getuid() == 0:
        os.chown(folder, 65534, 65534)
    yield folder
    shutil.rmtree(folder)


def as_ordinary_user(home: Path, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Operations in a process without privileges."""
    found = subprocess.run(
        [sys.executable, "-c", ORDINARY, home, json.dumps(bodies)],
        check=True,
        capture_output=True,
        text=True,
    )
    return [json.loads(line) for line in found.stdout.splitlines()]
