"""Slots: processes count together, and go on where an earlier one ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.adapters.monitoring.slots import FILE_BYTES, Slots

COUNT = """
import sys
from pathlib import Path
from portal.adapters.monitoring.prometheus import PrometheusMeasures
measures = PrometheusMeasures(Path(sys.argv[1]))
measures.login("refused")
measures.request("GET", "/sessions", 200, 0.02)
print("ready", flush=True)
sys.stdin.read()
"""
READ = """
import sys
from pathlib import Path
from portal.adapters.monitoring.prometheus import PrometheusMeasures
from portal.core.monitoring import Snapshot
none = Snapshot("", (), None, None, None, None, {}, None)
print(PrometheusMeasures(Path(sys.argv[1])).exposition(none).decode())
"""


def start(folder: Path) -> subprocess.Popen[str]:
    """A process that counts once, and holds its slot until its input ends."""
    argv = [sys.executable, "-c", COUNT, str(folder)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def read(folder: Path) -> str:
    """What a further process shows."""
    argv = [sys.executable, "-c", READ, str(folder)]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def test_processes_count_together_and_after_their_end(tmp_path: Path) -> None:
    first, second = start(tmp_path), start(tmp_path)
    assert 'slipway_logins_total{outcome="refused"} 2.0' in read(tmp_path)
    first.kill()
    first.communicate()
    second.communicate()
    third = start(tmp_path)
    third.communicate()
    text = read(tmp_path)
    assert 'slipway_logins_total{outcome="refused"} 3.0' in text
    assert 'slipway_http_request_seconds_count{route="/sessions"} 3.0' in text
    assert len(list(tmp_path.glob("*.lock"))) == 3, "slots are taken again"


def test_the_files_are_allocated(tmp_path: Path) -> None:
    assert Slots(tmp_path).identifier() == 0
    for file in tmp_path.glob("*.db"):
        assert file.stat().st_blocks * 512 >= FILE_BYTES, "a sparse file ends the process if full"


def test_a_forked_process_takes_another_slot(tmp_path: Path) -> None:
    slots = Slots(tmp_path)
    assert slots.identifier() == 0
    child = os.fork()
    if child == 0:
        os._exit(slots.identifier())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert slots.identifier() == 0


def test_no_slot_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.adapters.monitoring.slots.SLOTS", 1)
    held = Slots(tmp_path)
    assert held.identifier() == 0
    with pytest.raises(OSError, match="taken"):
        Slots(tmp_path).identifier()
