"""How much space a folder takes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server.tree import folder_size
from tests.unit.node.file_server.conftest import Client


def counted(control: Client, path: str) -> Any:
    deadline = time.monotonic() + 10
    while not (found := control("GET", f"/v1/usage/{path}").json)["complete"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def test_files_folders_and_hard_links_are_counted_once(control: Client, home: Path) -> None:
    folder = home / "work"
    (folder / "deep").mkdir(parents=True)
    (folder / "a").write_bytes(b"x" * 5000)
    os.link(folder / "a", folder / "deep" / "same")
    (folder / "out").symlink_to("/etc")
    with open(folder / "sparse", "wb") as file:
        file.truncate(1 << 30)
    found = counted(control, "home/work")
    assert (found["files"], found["folders"], found["unreadable"]) == (3, 1, 0)
    assert found["bytes"] == 5000 + (1 << 30)
    assert 5000 <= found["disk_bytes"] < 100_000
    assert time.time() - 10 < found["counted"] <= time.time()


def test_a_result_is_kept_until_it_is_wanted_anew(control: Client, home: Path) -> None:
    (home / "a").write_text("a")
    assert counted(control, "home")["files"] == 1
    (home / "b").write_text("b")
    assert counted(control, "home")["files"] == 1
    control("GET", "/v1/usage/home?again=true")
    assert counted(control, "home")["files"] == 2


def test_a_count_that_goes_on_is_answered_at_once(
    control: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        (home / f"{number}").write_text("x")
    release = False
    add = folder_size._add

    def slow(count: folder_size.Count, status: os.stat_result) -> None:
        while count.files > 10 and not release:
            time.sleep(0.01)
        add(count, status)

    monkeypatch.setattr(folder_size, "_add", slow)
    start = time.monotonic()
    found = control("GET", "/v1/usage/home").json
    assert time.monotonic() - start < 2
    assert (found["complete"], found["files"]) == (False, 11)
    release = True
    assert counted(control, "home")["files"] == 50


def test_what_is_missing_is_a_404(control: Client) -> None:
    for path in ("nowhere", "home/none"):
        assert control("GET", f"/v1/usage/{path}").status == 404
