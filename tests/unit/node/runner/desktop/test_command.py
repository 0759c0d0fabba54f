"""The desktop app's program as a whole, with a stand-in for the X server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.node.runner.desktop.command import variables
from tests.support.paths import ROOT

READY = 'while [ "$1" != -displayfd ]; do shift; done; echo 3 > /proc/self/fd/$2; exec sleep 30'


@pytest.fixture
def toolkit(directory: str) -> Path:
    """A toolkit with a page, whose X server is yet to be written."""
    folder = Path(directory) / "toolkit"
    for name in ("bin", "share"):
        (folder / name).mkdir(parents=True)
    (folder / "share" / "desktop.html").write_text("<html>")
    return folder


def run(toolkit: Path, server: str, desktop: str) -> tuple[int, str]:
    """Run the app until it ends: its exit code and output."""
    program = toolkit / "bin" / "Xvnc"
    program.write_text(f"#!/bin/sh\n{server}\n")
    program.chmod(0o755)
    place = str(toolkit.parent)
    ours = {"SLIPWAY_TOOLKIT": str(toolkit), "SLIPWAY_RUN": place, "HOME": place}
    program_of_app = "from portal.node.runner.desktop.command import main; exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program_of_app, "sh", "-c", desktop],
        env={**os.environ, **ours, "PYTHONPATH": str(ROOT), "SLIPWAY_SOCKET": f"{place}/app"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout


def test_logging_out_ends_the_app(toolkit: Path) -> None:
    code, output = run(toolkit, READY, "echo display $DISPLAY")
    assert (code, output) == (0, "display :3\nThe desktop has ended (exit code 0).\n")


def test_a_desktop_that_fails_is_a_failure(toolkit: Path) -> None:
    code, output = run(toolkit, READY, "exit 4")
    assert (code, output) == (70, "The desktop has ended (exit code 4).\n")


def test_the_end_of_the_x_server_is_said(toolkit: Path) -> None:
    ending = READY.replace("exec sleep 30", "sleep 1; exit 3")
    code, output = run(toolkit, ending, "exec sleep 5")
    assert (code, output) == (70, "The X server has ended (exit code 3).\n")


def test_an_x_server_that_fails_starts_again_without_opengl(toolkit: Path) -> None:
    picky = f'case "$*" in *GLX*) ;; *) exit 1 ;; esac; {READY}'
    code, output = run(toolkit, picky, "true")
    assert code == 0
    assert output.startswith("The X server starts again, without OpenGL.\n")
    code, output = run(toolkit, "exit 1", "true")
    assert code == 70
    assert output.endswith("The X server has not started; its last lines say why.\n")


def test_the_desktops_settings_come_before_the_images(directory: str) -> None:
    found = variables({"XDG_CONFIG_DIRS": "/site"}, directory, ":1", "/opt/slipway")
    assert found["XDG_CONFIG_DIRS"] == "/opt/slipway/desktop/xdg:/site"
    assert found["XAUTHORITY"] == f"{directory}/Xauthority"
    assert Path(found["XDG_RUNTIME_DIR"]).stat().st_mode & 0o777 == 0o700
