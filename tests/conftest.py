"""Fixtures and options shared by many tests."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis

from portal.config import Settings
from tests import sharing
from tests.support.fakes import World, make_world
from tests.support.kernel_log import memory_kills

# Developers' runs explore new random cases; CI always uses the same ones. No deadline: how long an
# example takes says more about the machine's load than about the code.
hypothesis.register_profile("slipway", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.load_profile("slipway")

REPEATED = {Path(__file__).parent / kind for kind in ("browser", "slurm")}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--share`, for runs on clusters of several kinds."""
    parser.addoption("--share", metavar="K/N", help="the tests of the K-th of N kinds of clusters")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of this share, the longest files first; some may be repeated.

    Tests in the browser and with Slurm wait for other people's programs, on two cores; one that
    fails runs once more, as Playwright recommends for CI, and tests/run.sh names it at its end.
    Unit tests are not repeated: one that fails sometimes has a fault, or its code has. Nor are
    attacks: an attack that succeeds once has succeeded.
    """
    for item in items:
        if REPEATED.intersection(item.path.parents):
            item.add_marker(pytest.mark.flaky(reruns=1))
    if share := config.getoption("--share"):
        items[:], others = sharing.choose(items, share)
        config.hook.pytest_deselected(items=others)


FAILURE = pytest.StashKey[str]()
"""What a test's first attempt failed with."""
BEGINNING = pytest.StashKey[float]()
"""When the attempt began, by time.monotonic()."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep why the first attempt failed: the second may fail of what the first has left.

    Processes that the kernel killed meanwhile are named, since they may be why.
    """
    report = yield
    if call.excinfo is not None and report.failed:
        item.stash.setdefault(FAILURE, call.excinfo.exconly())
        if kills := memory_kills(item.stash.get(BEGINNING, 0.0)):
            attempt = getattr(item, "execution_count", 1)
            item.user_properties.append((f"killed in attempt {attempt}", ", ".join(kills)))
    return report


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have the results of a second attempt say why the first failed."""
    item.stash[BEGINNING] = time.monotonic()
    if getattr(item, "execution_count", 1) > 1:
        item.user_properties.append(("first failure", item.stash.get(FAILURE, "")))


class InstantReports:
    """Prints why a test failed or is repeated when it happens: a run of an hour may be cut off."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print the first failure of a test that is repeated in full, others in a line."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None or report.outcome not in ("failed", "rerun"):
            return
        terminal.ensure_newline()
        if str(report.outcome) == "rerun":  # of pytest-rerunfailures, which pytest's types lack
            terminal.section(f"first attempt of {report.nodeid}")
            terminal.write_line(report.longreprtext)
        else:
            crash = getattr(report.longrepr, "reprcrash", None)
            terminal.write_line(f"FAILED {report.nodeid} ({report.when}): {crash or ''}")


def pytest_configure(config: pytest.Config) -> None:
    """Show failures at once, in the process that prints."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(InstantReports(config))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a portal in its own folder."""
    (tmp_path / "secret_key").write_text("0" * 64)
    return Settings.model_validate(
        {
            "state": {"directory": str(tmp_path), "run": str(tmp_path)},
            "slurm": {"admins": ["admin"]},
        }
    )


@pytest.fixture
def world(settings: Settings) -> World:
    """A portal with fakes for Slurm, HAProxy and runners; everything else is real."""
    return make_world(settings)
