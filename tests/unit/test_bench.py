"""The benches measure what sites run: the configurations come from the product's own code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import ways
from portal.runner import gateway
from tests.cluster import ROOT


def test_front_is_what_the_command_renders(tmp_path: Path) -> None:
    ways.prepare_site(tmp_path)
    config = ["--config", str(tmp_path / "slipway.toml")]
    rendered = subprocess.run(
        [sys.executable, "-m", "portal.cli", *config, "render", "haproxy"],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ).stdout
    assert "backend sessions" in rendered
    assert ways.front_config(tmp_path) == rendered


@pytest.mark.skipif(
    not (shutil.which("haproxy") and shutil.which("openssl")), reason="needs haproxy and openssl"
)
def test_gateway_is_what_the_runner_renders(tmp_path: Path) -> None:
    settings = ways.prepare_site(tmp_path)
    run = tmp_path / "gateway"
    run.mkdir()
    running, listener = ways.start_gateway(settings, tmp_path, run)
    with listener:
        written = (run / "gateway.cfg").read_text()
        running.stop()
    file = re.search(r"fd@(\d+)", written)
    assert file
    connections = gateway.affordable_connections()
    assert written == gateway.render(str(run), ways.SESSION, ways.APPS, int(file[1]), connections)
