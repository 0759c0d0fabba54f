"""Programs of builds, and what is shown of them."""

from __future__ import annotations

import signal
import time

import pytest

from portal.adapters.images import processes
from portal.adapters.images.processes import run_shown

LINES = (
    "INFO: Extracting OCI image...",
    '2026/11/23 14:17:00  warn rootless{bin/ls} ignoring (usually) harmless EPERM on setxattr "x"',
    "WARNING: The --fix-perms option modifies the filesystem permissions on the result",
    "",
    "FATAL: no space left",
)


def test_what_says_nothing_is_left_out_of_the_output_and_of_the_message() -> None:
    shown: list[str] = []
    script = 'printf "%s\\n" "$@"; exit 3'
    assert run_shown(["sh", "-c", script, "sh", *LINES], shown.append) == (3, shown)
    assert shown == [LINES[0], LINES[4]]


def test_an_interrupted_program_gets_the_signals_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_PATIENCE", 0.5)
    shown: list[str] = []

    def note(text: str) -> None:
        shown.append(text)
        raise KeyboardInterrupt

    script = "trap 'exec sleep 30' INT; trap '' TERM; echo ready; while :; do sleep 0.05; done"
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_shown(["bash", "-c", script], note, ends=(signal.SIGINT, signal.SIGKILL))
    assert shown == ["ready"]
    assert time.monotonic() - before > 0.5
