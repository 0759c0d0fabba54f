"""Sizes of folders in the launcher."""

from __future__ import annotations

import time
from typing import Any

from portal.web.pages.launch.folder_sizes import MOST
from tests.support.fakes import World
from tests.unit.web.conftest import Browser


def sizes(browser: Browser, *names: str) -> Any:
    """The answer, as soon as everything is counted."""
    for _ in range(50):
        answer = browser.get("/folder-sizes", query_string=[("name", name) for name in names])
        assert answer.status_code == 200
        if answer.json and answer.json["complete"]:
            return answer.json
        time.sleep(0.05)
    raise AssertionError(answer.json)


def test_folders_are_counted_and_missing_ones_left_out(world: World, alice: Browser) -> None:
    data = world.file_servers.home("alice") / "storage" / "data"
    data.mkdir()
    (data / "a.bin").write_bytes(bytes(3 << 20))
    found = sizes(alice, "data", "home", "none", "bob/private", "../x", "")
    assert found["sizes"] == {"data": "3 MB in 1 file"}
    assert found["free"].endswith("free on the file system of your storage folders")


def test_nothing_is_said_while_files_do_not_answer(world: World, alice: Browser) -> None:
    world.file_servers.away = True
    assert sizes(alice, "data") == {"sizes": {}, "free": "", "complete": True}


def test_only_some_folders_are_counted_at_once(alice: Browser) -> None:
    assert sizes(alice, *(f"f{number}" for number in range(3 * MOST)))["sizes"] == {}
