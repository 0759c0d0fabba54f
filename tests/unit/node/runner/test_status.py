"""The portal's last answer, for programs of the session itself."""

from __future__ import annotations

import json
import time
from pathlib import Path

from portal.node.runner.status import StatusFile

ANSWER: dict[str, object] = {"name": "a7", "kept": "all", "seconds_left": 60, "unused": False}


def test_the_last_answer_is_kept_with_its_time(tmp_path: Path) -> None:
    file = StatusFile(str(tmp_path))
    file.write(ANSWER | {"name": "old"})
    file.write(ANSWER | {"more": "x"})
    found = json.loads((tmp_path / "session.json").read_text())
    assert abs(found.pop("at") - time.time()) < 5
    assert found == ANSWER
    assert [path.name for path in tmp_path.iterdir()] == ["session.json"]


def test_other_answers_are_ignored(tmp_path: Path) -> None:
    StatusFile(str(tmp_path)).write({"error": "x"})
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_ends_nothing(tmp_path: Path) -> None:
    StatusFile(str(tmp_path / "gone")).write(ANSWER)
