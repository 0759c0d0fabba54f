"""What a server that was killed leaves: a record, and nothing under a final name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server.location import parse
from portal.node.file_server.operations import records
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.operations.records import FOLDER, Records, clean_up
from portal.node.file_server.roots import Root, Roots
from tests.unit.node.file_server.operations.conftest import operations_of

PROGRAM = """
import os, sys, time
from portal.node.file_server.operations.kinds import copying
from tests.unit.node.file_server.operations.conftest import operations_of
copy_data = copying.copy_data
def slow(source, target, progress):
    time.sleep(0.02)
    return copy_data(source, target, progress)
copying.copy_data = slow
items = ["home/" + name for name in sys.argv[2:]]
found = operations_of({"home": sys.argv[1]}).start(
    {"kind": "copy", "items": items, "to": "home/storage"}
)
print(found.id, flush=True)
time.sleep(60)
"""


def wait_for(test: Any) -> Any:
    deadline = time.monotonic() + 10
    while not (found := test()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def test_after_kill_9_a_copy_is_listed_as_interrupted_and_its_parts_are_removed(
    home: Path,
) -> None:
    (home / "first").write_text("first")
    (home / "many").mkdir()
    for number in range(2000):
        (home / "many" / str(number)).write_text("x")
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, home, "first", "many"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    operation = process.stdout.readline().strip()
    storage = home / "storage"
    part = wait_for(lambda: [name for name in os.listdir(storage) if name[0] == "."])[0]
    assert part.startswith(f".slipway-{operation}-")
    wait_for(lambda: len(os.listdir(storage / part)) > 10 if (storage / part).is_dir() else 0)
    time.sleep(2.2)  # the record of progress
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    operations = operations_of({"home": str(home)})
    found = wait_for(operations.list)[0]
    assert (found["id"], found["state"], found["kind"]) == (operation, "interrupted", "copy")
    assert found["items"] == ["home/first", "home/many"]
    assert 1 < found["files"] < 2001
    assert found["detail"].startswith("The file server ended meanwhile. ")
    wait_for(lambda: sorted(os.listdir(storage)) == ["data", "first"])
    again = wait_for(operations_of({"home": str(home)}).list)[0]
    assert (again["id"], again["state"]) == (operation, "interrupted")


def test_an_operation_runs_although_it_cannot_be_recorded(home: Path) -> None:
    (home / ".slipway").write_text("no folder")
    (home / "a").write_text("a")
    found = operations_of({"home": str(home)}).start(
        {"kind": "copy", "items": ["home/a"], "to": "home/storage"}
    )
    assert found.over.wait(5)
    assert found.state == "done"


def test_a_home_that_is_away_does_not_hold_up_an_operation_elsewhere(
    home: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / "a").write_text("a")
    operations = operations_of({"home": str(home), "scratch": str(elsewhere)})
    monkeypatch.setattr(records, "PATIENCE", 0.1)
    monkeypatch.setattr(Records, "_write", lambda *_: time.sleep(5))
    start = time.monotonic()
    found = operations.start({"kind": "delete", "items": ["scratch/a"]})
    assert found.over.wait(3)
    assert (found.state, time.monotonic() - start < 3) == ("done", True)


def test_records_that_are_old_foreign_or_broken_are_harmless(home: Path) -> None:
    folder = home / FOLDER
    folder.mkdir(parents=True)
    operations = operations_of({"home": str(home)})
    (home / "a").write_text("a")
    operations.start({"kind": "delete", "items": ["home/a"]})
    path = wait_for(lambda: list(folder.glob("test-*.json")))[0]
    wait_for(lambda: json.loads(path.read_text())["ended"])
    record = json.loads(path.read_text())
    old = folder / f"test-{'1' * 16}.json"
    old.write_text(json.dumps({**record, "ended": time.time() - 4000}))
    foreign = folder / f"else-{'2' * 16}.json"
    foreign.write_text(json.dumps({**record, "state": "running", "ended": None}))
    (folder / f"test-{'3' * 16}.json").write_text("{")
    (folder / f"test-{'4' * 16}.json").write_text("[]")
    (folder / f"test-{'5' * 16}.json").write_text(json.dumps({**record, "files": "many"}))
    found = wait_for(operations_of({"home": str(home)}).list)
    assert [each["id"] for each in found] == [record["id"]]
    wait_for(lambda: not old.exists())
    assert json.loads(foreign.read_text())["state"] == "running"


@pytest.mark.parametrize("others_write", [False, True])
def test_after_a_kill_only_what_was_made_is_removed_where_others_can_write(
    home: Path, others_write: bool
) -> None:
    storage = home / "storage"
    operation = Operation("copy", (parse("home/x"),), parse("home/storage"))
    prefix = operation.part_prefix.decode()
    for name in ("1", "2"):
        (storage / f"{prefix}{name}/deep").mkdir(parents=True)
        (storage / f"{prefix}{name}/deep/file").write_text("x")
    operation.parts.append((storage / f"{prefix}1").stat().st_ino)
    storage.chmod(0o777 if others_write else 0o755)
    (home / FOLDER).mkdir(parents=True)
    data = {**operation.as_json(), "state": "running", "parts": operation.parts}
    (home / FOLDER / f"x-{operation.id}.json").write_text(json.dumps(data))
    roots = Roots({"home": Root("home", str(home))})
    assert [each.state for each in Records(str(home), "x").earlier(roots)] == ["interrupted"]
    kept = sorted(name for name in os.listdir(storage) if name[0] == ".")
    assert kept == ([f"{prefix}2"] if others_write else [])


def test_what_is_only_noted_leaves_no_record(home: Path) -> None:
    operation = Operation("copy", (parse("home/x"),), parse("home/storage"))
    with Records(str(home), "x").noted(operation):
        assert os.listdir(home / FOLDER) == [f"x-{operation.id}.json"]
    wait_for(lambda: not os.listdir(home / FOLDER))


def test_the_end_is_recorded_although_progress_is_being_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the next server would take it for one that was killed."""
    operation = Operation("copy", (parse("home/x"),), parse("home/storage"), state="running")
    noted, writing, write = Records(str(home), "x"), threading.Event(), Records._write

    def slow(self: Records, operation: Operation) -> None:
        write(self, operation)
        if not operation.ended:
            writing.set()
            time.sleep(0.3)

    monkeypatch.setattr(records, "SECONDS", 0.05)
    monkeypatch.setattr(Records, "_write", slow)
    noted.begin(operation)
    writing.clear()
    assert writing.wait(5)
    operation.end("done", "")
    noted.end(operation)
    path = home / FOLDER / f"x-{operation.id}.json"
    wait_for(lambda: json.loads(path.read_text())["state"] == "done")


def test_what_was_set_aside_is_put_back_after_a_kill(home: Path) -> None:
    """Where names cannot be exchanged, as on NFS."""
    storage = home / "storage"
    operation = Operation("copy", (parse("home/x"),), parse("home/storage"))
    prefix = operation.part_prefix.decode()
    for number, name in enumerate(("missing", "reserved", "replaced")):
        (storage / f"{prefix}{number}.old/{name}").mkdir(parents=True)
        (storage / f"{prefix}{number}.old/{name}/file").write_text("old")
    (storage / "reserved").mkdir()
    (storage / "replaced").mkdir()
    (storage / "replaced/file").write_text("new")
    clean_up(Roots({"home": Root("home", str(home))}), operation)
    kept = {str(file.relative_to(storage)): file.read_text() for file in storage.glob("*/file")}
    assert kept == {"missing/file": "old", "reserved/file": "old", "replaced/file": "new"}
    assert [name for name in os.listdir(storage) if name[0] == "."] == []
