"""The time left in tmux: its words, when they change, and messages near the end."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from portal.node.runner.countdown import Countdown, Tmux, time_left


class FakeTmux(Tmux):
    """A tmux server that records what it is told; `clients` windows show it."""

    def __init__(self) -> None:
        self.number: int | None = 1
        self.clients = 1
        self.status: list[str] = []
        self.messages: list[str] = []

    def server(self) -> int | None:
        return self.number

    def show_status(self, text: str) -> bool:
        self.status.append(text)
        return True

    def show_message(self, text: str) -> bool:
        if self.clients:
            self.messages.append(text)
        return self.clients > 0


def answer(seconds: float | None, unused: bool = False) -> dict[str, object]:
    """The portal's answer to a heartbeat."""
    kept = "climate-2026 stays."
    return {"name": "silver1", "kept": kept, "seconds_left": seconds, "unused": unused}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (8 * 3600 + 1, "over 8 h"),
        (2 * 3600 - 1, "over 1 h 45 min"),
        (3600, "over 1 h"),
        (3599, "over 45 min"),
        (16 * 60, "over 15 min"),
        (14 * 60 + 59, "14 min"),
        (60, "1 min"),
        (59, "less than 1 min"),
        (-5, "less than 1 min"),
    ],
)
def test_the_time_left_in_words(seconds: float, text: str) -> None:
    assert time_left(seconds) == text


def test_an_hour_changes_the_line_rarely() -> None:
    tmux = FakeTmux()
    countdown = Countdown(tmux)
    for seconds in range(3 * 3600, 15 * 60 + 59, -10):
        countdown.tell(answer(seconds))
    # 3 h, 2 h, then quarters of an hour.
    assert len(tmux.status) == 9
    assert tmux.status[0] == "silver1 · over 3 h left"
    assert tmux.messages == []


def test_messages_at_fifteen_five_and_one_minute() -> None:
    tmux = FakeTmux()
    countdown = Countdown(tmux)
    for seconds in range(20 * 60, 0, -10):
        countdown.tell(answer(seconds))
    assert tmux.messages == [
        "silver1 ends in 15 min. climate-2026 stays.",
        "silver1 ends in 5 min. climate-2026 stays.",
        "silver1 ends in 1 min. climate-2026 stays.",
    ]
    assert tmux.status[-1] == "silver1 · less than 1 min left"


def test_an_extension_withdraws_the_warning_and_warns_again() -> None:
    tmux = FakeTmux()
    countdown = Countdown(tmux)
    for seconds in (800, 3600, 800, 790):
        countdown.tell(answer(seconds))
    assert len(tmux.messages) == 2


def test_a_terminal_opened_late_is_told_and_warned() -> None:
    tmux = FakeTmux()
    countdown = Countdown(tmux)
    tmux.number = None
    countdown.tell(answer(600))
    tmux.number, tmux.clients = 2, 0
    countdown.tell(answer(590))
    assert (tmux.status, tmux.messages) == (["silver1 · 9 min left"], [])
    tmux.clients = 1
    countdown.tell(answer(580))
    assert len(tmux.messages) == 1
    tmux.number = 3  # tmux was started anew
    countdown.tell(answer(570))
    assert len(tmux.status) == 2


def test_an_unused_session_says_so() -> None:
    tmux = FakeTmux()
    Countdown(tmux).tell(answer(240, unused=True))
    assert tmux.status == ["silver1 · unused, ends in 4 min"]
    assert tmux.messages == ["silver1 ends in 4 min unless you use it. climate-2026 stays."]


def test_without_an_end_the_name_is_shown() -> None:
    tmux = FakeTmux()
    Countdown(tmux).tell(answer(None))
    assert tmux.status == ["silver1"]


@pytest.mark.parametrize("said", [{}, {"name": 5}, {"name": None, "seconds_left": "x"}])
def test_other_answers_are_ignored(said: dict[str, object]) -> None:
    tmux = FakeTmux()
    Countdown(tmux).tell(said)
    assert (tmux.status, tmux.messages) == ([], [])


@pytest.fixture
def real(tmp_path: Path) -> Tmux:
    """A real tmux."""
    program = shutil.which("tmux")
    assert program, "install tmux"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tmux").symlink_to(program)
    return Tmux(str(tmp_path), str(tmp_path))


def start(tmux: Tmux, config: str, folder: Path) -> None:
    """Start a server with this configuration."""
    Path(tmux._socket).parent.mkdir(mode=0o700, parents=True)
    (folder / "conf").write_text(config)
    command = [tmux._program, "-S", tmux._socket, "-f", str(folder / "conf")]
    subprocess.run([*command, "new-session", "-d", "-x", "80", "-y", "20", "cat"], check=True)


def test_a_real_tmux_shows_it(real: Tmux, tmp_path: Path) -> None:
    assert real.server() is None
    start(real, "set -g status-right '#{@slipway}'\n", tmp_path)
    try:
        assert real.server() is not None
        assert real.show_status("a##b · 5 min left")
        assert real.run("display-message", "-p", "#{@slipway}") == "a##b · 5 min left\n"
        assert real.run("show", "-gv", "status-right") == "#{@slipway}\n"
        assert not real.show_message("nobody looks")
    finally:
        real.run("kill-server")


def test_a_tmux_without_settings_gets_our_part_and_ones_own_line_stays(
    real: Tmux, tmp_path: Path
) -> None:
    start(real, "", tmp_path)
    try:
        real.show_status("5 min left")
        assert (real.run("show", "-gv", "status-right") or "").startswith("#{@slipway}  ")
        real.run("set", "-g", "status-right", "mine")
        real.show_status("4 min left")
        assert real.run("show", "-gv", "status-right") == "mine\n"
    finally:
        real.run("kill-server")
