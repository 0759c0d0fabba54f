"""Apps as real processes: start, respond, fail, stop, and nothing left behind."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import time
from pathlib import Path

import pytest

from portal.node.runner.apps import app as apps
from portal.node.runner.apps.app import App
from tests.support.paths import ROOT
from tests.support.runner_apps import DEMO, WatchedApp, app_script, start_order, wait_until


def test_ready_after_the_first_response(watched: WatchedApp) -> None:
    watched.app.start(start_order(app_script("sleep 0.3")))
    assert watched.app.state == "starting"
    report = watched.next()
    assert (report["state"], report["message"]) == ("ready", "")
    wait_until(lambda: watched.app.report()["log"] == "listening")


def test_starting_twice_starts_once(watched: WatchedApp, directory: str) -> None:
    counted = start_order(app_script(f"echo x >> {directory}/count"))
    watched.app.start(counted)
    watched.app.start(counted)
    watched.next()
    watched.app.start(counted)
    with open(f"{directory}/count", encoding="ascii") as file:
        assert file.read() == "x\n"


@pytest.mark.parametrize("status", [404, 500, 503])
def test_an_error_page_is_an_answer(watched: WatchedApp, status: int) -> None:
    watched.app.start(start_order(app_script("", status=status)))
    assert watched.next()["state"] == "ready"


def test_failure_is_reported_with_the_last_lines(watched: WatchedApp) -> None:
    watched.app.start(
        start_order("for i in $(seq 1 80); do echo line $i; done; echo oh no >&2; exit 3")
    )
    report = watched.next()
    assert report["state"] == "failed"
    assert report["message"] == f"{DEMO} ended before it answered (exit code 3)"
    lines = str(report["log"]).split("\n")
    assert len(lines) == 50
    assert lines[-2:] == ["line 80", "oh no"]


def test_endless_line_is_truncated(watched: WatchedApp) -> None:
    watched.app.start(start_order("head -c 100000 /dev/zero | tr '\\0' x; exit 1"))
    lines = str(watched.next()["log"]).split("\n")
    assert max(len(line) for line in lines) <= apps.LONGEST_LINE


def test_crash_after_ready_and_start_again(watched: WatchedApp) -> None:
    watched.app.start(start_order(app_script("")))
    assert watched.next()["state"] == "ready"
    for pid in apps.processes_of(DEMO):
        os.kill(pid, 9)
    report = watched.next()
    assert (report["state"], report["message"]) == ("failed", f"{DEMO} ended (signal 9)")
    watched.app.start(start_order(app_script("")))
    assert watched.next()["state"] == "ready"


def test_stop_ends_all_processes(watched: WatchedApp) -> None:
    # A daemon that leaves the process group and ignores SIGTERM, as tmux's shells do.
    watched.app.start(
        start_order(app_script("setsid sh -c 'trap \"\" TERM; sleep 100' </dev/null &"))
    )
    assert watched.next()["state"] == "ready"
    assert len(list(apps.processes_of(DEMO))) >= 2
    watched.app.stop(2)
    assert watched.next() == {"state": "stopped", "message": "", "log": "listening"}
    wait_until(lambda: not list(apps.processes_of(DEMO)))


def test_stop_by_force(watched: WatchedApp) -> None:
    watched.app.start(start_order("trap '' TERM; while :; do sleep 0.1; done"))
    time.sleep(0.2)
    began = time.monotonic()
    watched.app.stop(0.3)
    assert time.monotonic() - began < 1
    assert watched.next()["state"] == "stopped"
    wait_until(lambda: not list(apps.processes_of(DEMO)))


def test_environment_of_an_app(
    watched: WatchedApp, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PS1", "Apptainer> ")
    monkeypatch.setenv("HOME", directory)
    # In a subshell, and not by a pipe: the shell may hold a pipe's end, or a redirection's file.
    count = "(ls /proc/$$/fd > descriptors); wc -l < descriptors"
    watched.app.start(
        start_order(f"env; umask; pwd; cat /proc/self/oom_score_adj; {count}; exit 1")
    )
    lines = str(watched.next()["log"]).split("\n")
    assert f"SLIPWAY_SOCKET={directory}/{DEMO}.sock" in lines
    assert "SLIPWAY_TOOLKIT=/opt/slipway" in lines
    assert not [line for line in lines if line.startswith("PS1=")]
    assert lines[-4:-2] == [f"{apps.UMASK:04o}", directory]
    assert int(lines[-2]) >= apps.OOM_SCORE
    # Only the three standard ones and the script itself.
    assert int(lines[-1]) <= 4


@pytest.mark.parametrize("mask", [0o007, 0o027, 0o022])
def test_an_app_has_the_jobs_umask(directory: str, mask: int) -> None:
    run = (
        "import os, queue; from portal.node.runner.apps.app import App; os.umask(0o077); "
        "from tests.support.runner_apps import DEMO, start_order; reports = queue.Queue(); "
        f"app = App(DEMO, {directory!r}, '/opt/slipway', lambda app: reports.put(app.report())); "
        "app.start(start_order('umask; exit 1')); print(reports.get(timeout=60)['log'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", run],
        capture_output=True,
        text=True,
        umask=mask,
        cwd=ROOT,
        check=True,
    )
    assert f"{mask:04o}" in done.stdout.split("\n")


def test_user_variables_reach_the_app_but_do_not_override_ours(
    directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", directory)
    reports: queue.Queue[dict[str, object]] = queue.Queue()
    env = {"COLOUR": "two words", "PATH": "/mine", "SLIPWAY_APP": "other"}
    app = App(DEMO, directory, "/opt/slipway", lambda app: reports.put(app.report()), env)
    app.start(start_order("env; exit 1"))
    lines = str(reports.get(timeout=10)["log"]).split("\n")
    assert "COLOUR=two words" in lines
    assert f"PATH=/mine:{os.environ['PATH']}" in lines
    assert f"SLIPWAY_APP={DEMO}" in lines
    assert "COLOUR" not in os.environ


def test_script_that_cannot_be_started(
    watched: WatchedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/nowhere/at/all")
    watched.app.start(start_order("true"))
    report = watched.next()
    assert report["state"] == "failed"
    assert "cannot be started" in str(report["message"])


def start_in(home: Path, workdir: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where an app of a session with this start directory starts, and what it is told."""
    monkeypatch.setenv("HOME", str(home))
    reports: queue.Queue[dict[str, object]] = queue.Queue()
    run = str(home / "run")
    app = App(DEMO, run, "/opt/slipway", lambda app: reports.put(app.report()), None, workdir)
    app.start(start_order('pwd; echo "$SLIPWAY_WORKDIR"; exit 1'))
    return str(reports.get(timeout=10)["log"]).splitlines()


def test_apps_start_in_the_sessions_start_directory(
    directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(directory)
    (home / "climate-2026").mkdir()
    outside = home.parent
    assert start_in(home, "", monkeypatch) == [directory] * 2
    assert start_in(home, "climate-2026", monkeypatch) == [f"{directory}/climate-2026"] * 2
    assert start_in(home, str(outside), monkeypatch) == [str(outside)] * 2
    # Deleted meanwhile: it starts all the same.
    assert start_in(home, "gone", monkeypatch) == [directory] * 2
