"""Searching by name below a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.node.file_server.tree import search
from tests.unit.node.file_server.conftest import Client


def paths(control: Client, query: str) -> list[str]:
    found = control("GET", f"/v1/search/{query}").json
    assert found["complete"]
    return [entry["path"] for entry in found["entries"]]


def test_names_are_found_regardless_of_case_the_nearest_first(control: Client, home: Path) -> None:
    (home / "x" / "y").mkdir(parents=True)
    (home / "x" / "y" / "Report.pdf").write_text("")
    (home / "x" / "my reports").mkdir()
    (home / "REPORT").write_text("")
    (home / "loop").symlink_to(".")
    (home / ".report").write_text("")
    (home / ".slipway-report").write_text("")
    assert paths(control, "home?text=report") == [
        "home/REPORT",
        "home/x/my%20reports",
        "home/x/y/Report.pdf",
    ]
    assert paths(control, "home?text=report&hidden=true")[:1] != []
    assert "home/.report" in paths(control, "home?text=report&hidden=true")
    assert paths(control, "home/x/y?text=%72EP") == ["home/x/y/Report.pdf"]


def test_a_text_is_needed_and_the_folder_must_exist(control: Client, home: Path) -> None:
    for query in ("", "?text=", "?text=%20", "?text=" + "x" * 300):
        found = control("GET", f"/v1/search/home{query}")
        assert (found.status, found.json["field"]) == (422, "text")
    assert control("GET", "/v1/search/home/none?text=x").status == 404


def test_a_search_ends_after_its_time_and_after_a_thousand_results(
    control: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1001):
        (home / f"f{number}").touch()
    found = control("GET", "/v1/search/home?text=f").json
    assert (len(found["entries"]), found["complete"]) == (1000, False)
    monkeypatch.setattr(search, "SECONDS", 0.0)
    assert control("GET", "/v1/search/home?text=f").json == {"entries": [], "complete": False}
