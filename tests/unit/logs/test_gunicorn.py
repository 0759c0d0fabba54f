"""What gunicorn's first process keeps of the release that it was started with."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import packages_distributions

from portal.cli.apply.applied import IN_GUNICORN
from tests.support.paths import ROOT

FIRST = """\
import sys
before = set(sys.modules)
import gunicorn.app.wsgiapp, gunicorn.arbiter
from gunicorn.config import Config
from gunicorn.util import load_class
config = Config()
config.set("logger_class", "portal.logs.gunicorn.PortalLogger")
logger = config.logger_class(config)
logger.error("still %s", "here")
{then}
for name in set(sys.modules) - before:
    print(name)
"""
SECOND = """\
from portal.config.log import LogSettings
from portal.logs.setup import configure
configure(LogSettings())
import logging
logging.getLogger("portal").warning("once")
"""


def run(then: str = "") -> tuple[list[str], str]:
    """The modules of a process that has set up the logger, and what it logged."""
    words = [sys.executable, "-c", FIRST.format(then=then)]
    env = {"PYTHONPATH": str(ROOT), "SLIPWAY_CONFIG": str(ROOT / "cluster/etc/slipway.toml")}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split(), done.stderr


def test_workers_load_the_portal_of_the_release_that_is_installed() -> None:
    modules, logged = run()
    assert [name for name in modules if name.split(".")[0] == "portal"] == []
    assert "ERROR gunicorn.error: still here" in logged


def test_other_packages_that_it_keeps_are_compared_by_apply() -> None:
    """A worker that was forked from it goes on with these, so another version needs a restart."""
    known = packages_distributions()
    modules = {name.split(".")[0] for name in run()[0]}
    found = {known[name][0].lower().replace("_", "-") for name in modules if name in known}
    assert found - {"slipway"} <= set(IN_GUNICORN)
    assert "pydantic" in found


def test_a_worker_that_loads_it_again_logs_each_line_once() -> None:
    assert run(SECOND)[1].count("once") == 1
