"""`slipway apply`, and `slipway reload-proxy` and `reload-web`, which it uses."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.adapters.haproxy.agent import follows
from portal.adapters.haproxy.map_files import ROUTES, MapFiles
from portal.adapters.haproxy.runtime_api import Haproxy
from portal.adapters.web_processes import Gunicorn
from portal.cli.apply.account import run_as_owner, slipway
from portal.cli.apply.files import RenderedFile
from portal.cli.apply.plan import Plan, Refused, make_plan
from portal.cli.apply.processes import BY_HAND, Processes
from portal.cli.apply.reload_web import WebReload
from portal.cli.apply.take_over import save, take_over, undo
from portal.cli.state.account import fail, wrong_account
from portal.config import Settings, settings_file

_STATUSES = """\
exit status: 0 the portal runs as the settings say (--dry-run: it was shown what would be done);
1 something is wrong, and everything runs as before; 2 the settings are invalid, and everything runs
as before; 3 the files are written, but a process that is named has not taken them over."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    parser = commands.add_parser(
        "apply",
        help="take changed settings, or another release, into service without a refused request",
        epilog=_STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.set_defaults(action=_apply)
    parser = commands.add_parser(
        "reload-proxy", help="have HAProxy read its configuration again; no route changes meanwhile"
    )
    parser.set_defaults(action=_reload_proxy)
    parser = commands.add_parser(
        "reload-web", help="replace gunicorn's workers by new ones, while the old ones still answer"
    )
    parser.set_defaults(action=_reload_web)


def _reload_proxy(settings: Settings, _options: argparse.Namespace) -> int:
    if problem := wrong_account(settings):
        return fail(problem)
    files = MapFiles(settings.state.run)
    with files.exclusively():
        if settings.state.several_hosts and not follows(settings.state.run):
            # Other hosts rely on the shutdown, but a new process serves until its first check.
            files.write(ROUTES, {})
        Haproxy(settings.state.run).reload()
    return 0


def _reload_web(settings: Settings, _options: argparse.Namespace) -> int:
    if problem := wrong_account(settings):
        return fail(problem)
    WebReload(Gunicorn(Path(settings.state.run))).run()
    return 0


def _apply(settings: Settings, options: argparse.Namespace) -> int:
    file = settings_file(options.config)
    try:
        _check(settings, file)
        processes = Processes(settings, file)
        plan = make_plan(settings, processes)
        print("\n".join(plan.lines()) or "The portal runs as the settings say.", flush=True)
        if options.dry_run or not plan:
            return 0
        with _alone(settings):
            return _carry_out(settings, file, plan, processes)
    except Refused as error:
        return fail(f"{error}\nNothing was changed.")


def _check(settings: Settings, file: Path) -> None:
    """Run the local checks: raise Refused for errors, print warnings."""
    if not Path(settings.state.directory).is_dir():
        raise Refused(f"{settings.state.directory} is not there: run `slipway init`")
    result = run_as_owner(settings, slipway(file, "check", "--local"))
    lines = result.output.splitlines()
    if result.status:
        errors = [line for line in lines if not line.startswith(("ok ", "WARNING"))]
        raise Refused("\n".join(errors) or f"slipway check --local: exit status {result.status}")
    for line in lines:
        if line.startswith("WARNING"):
            print(line)


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    descriptor = os.open(settings.state.directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Refused("another `slipway apply` runs: wait until it has ended") from None
    finally:
        os.close(descriptor)


def _carry_out(settings: Settings, file: Path, plan: Plan, processes: Processes) -> int:
    if problem := processes.problem():
        raise Refused(problem)
    # Migrates the database and renews certificates, both of which can be repeated.
    init = run_as_owner(settings, slipway(file, "init"))
    if init.status:
        raise Refused(f"slipway init: {init.output}")
    trial = [sys.executable, "-c", "import portal.wsgi"]
    result = run_as_owner(settings, trial, {"SLIPWAY_CONFIG": str(file.absolute())})
    if result.status:
        raise Refused(f"the web application does not start with these settings:\n{result.output}")
    plan = make_plan(settings, processes)  # includes new certificates
    _write(plan)
    if settings.service.supervisor == "none":
        save(settings, plan.target)
        print(BY_HAND)
        return 0
    return take_over(settings, plan, processes)


def _write(plan: Plan) -> None:
    """Replace the files that differ: all of them or none."""
    written: list[RenderedFile] = []
    try:
        for file in plan.files:
            if file.differs:
                written.append(file)
                file.write()
    except OSError as error:
        undo(written)
        name = error.filename or written[-1].path
        raise Refused(f"{name} cannot be written: {error.strerror}") from error
