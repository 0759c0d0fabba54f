"""The benchmarks measure what sites run: their configurations come from the product's own code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import browser, routes
from portal.node.runner import gateway
from tests.support.paths import ROOT


def test_front_is_what_the_command_renders(tmp_path: Path) -> None:
    routes.prepare_site(tmp_path)
    config = ["--config", str(tmp_path / "slipway.toml")]
    rendered = subprocess.run(
        [sys.executable, "-m", "portal.cli.main", *config, "render", "haproxy"],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ).stdout
    assert "backend sessions" in rendered
    assert routes.front_config(tmp_path) == rendered


@pytest.mark.skipif(
    not (shutil.which("haproxy") and shutil.which("openssl")), reason="needs haproxy and openssl"
)
def test_gateway_is_what_the_runner_renders(tmp_path: Path) -> None:
    settings = routes.prepare_site(tmp_path)
    run = tmp_path / "gateway"
    run.mkdir()
    running, listener = routes.start_gateway(settings, tmp_path, run)
    with listener:
        written = (run / "gateway.cfg").read_text()
        running.stop()
    file = re.search(r"fd@(\d+)", written)
    assert file
    connections = gateway.affordable_connections()
    assert written == gateway.render(
        str(run), routes.SESSION, routes.APPS, int(file[1]), connections
    )


def test_the_browsers_figures_are_medians() -> None:
    first = [browser.Load(1, 5_000_000), browser.Load(2, 1_000_000), browser.Load(3, 100_000)]
    second = [browser.Load(3, 5_000_000), browser.Load(2, 1_000_000), browser.Load(1, 300_000)]
    third = [browser.Load(2, 6_000_000), browser.Load(9, 1_000_000), browser.Load(8, 200_000)]
    rounds = [first, second, third]
    lines = browser.report(rounds).splitlines()
    assert [line.split()[2:4] for line in lines[1:]] == [
        ["2.00", "5.00"], ["2.00", "1.00"], ["3.00", "0.20"],
    ]  # fmt: skip
