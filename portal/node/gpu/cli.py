"""The command `slipway-gpu`, for root on the compute nodes."""

from __future__ import annotations

import argparse
import os
import platform
import sys

from portal.node.gpu import check, gres, limits, prolog, settings, slices, untrusted
from portal.node.gpu.health.node import Node
from portal.node.gpu.nvml import Nvml, NvmlError
from portal.node.gpu.slices import JOBS
from portal.node.gpu.watchdog import neighbours
from portal.node.gpu.watchdog.lock import lock
from portal.node.gpu.watchdog.watch import Watch

MARKS = {"ok": "ok     ", "note": "note   ", "wrong": "MISSING"}


def main(argv: list[str] | None = None) -> int:
    """Run one command; an error is one line on stderr."""
    parser = argparse.ArgumentParser(prog="slipway-gpu", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, action, text in (
        ("prolog", _prolog, "create the slice of job $SLURM_JOB_ID (Slurm's Prolog)"),
        ("epilog", _epilog, "remove the slice (Slurm's Epilog)"),
        ("watch", _watch, "measure use and kill what exceeds its slice, until stopped"),
        ("apply", _apply, "let the driver limit job $SLURM_JOB_ID (the SPANK plug-in)"),
        ("forgive", _forgive, "end job $SLURM_JOB_ID's waiting for its share of the GPU"),
        ("health", _health, "look after this node (Slurm's HealthCheckProgram)"),
        ("unkillable", _unkillable, "free job $SLURM_JOB_ID (Slurm's UnkillableStepProgram)"),
        ("check", _check, "report what is missing on this node"),
        ("gres", _gres, "print this node's lines for gres.conf and slurm.conf"),
    ):
        commands.add_parser(name, help=text).set_defaults(action=action)
    options = parser.parse_args(argv)
    os.umask(0o022)
    try:
        return int(options.action() or 0)
    except (NvmlError, settings.SettingsError, limits.LimitsError, OSError, KeyError) as error:
        text = f"{error} is not set" if isinstance(error, KeyError) else str(error)
        print(f"slipway-gpu: {untrusted.printable(text)}", file=sys.stderr)
        return 1


def _prolog() -> None:
    prolog.prolog(os.environ)


def _epilog() -> None:
    prolog.epilog(os.environ)


def _apply() -> None:
    limits.apply(int(os.environ["SLURM_JOB_ID"]))


def _forgive() -> None:
    folder = slices.folder_of(int(os.environ["SLURM_JOB_ID"]))
    neighbours.forgive(folder, slices.parse_slice(untrusted.read(folder / "slice")))


def _watch() -> int:
    lock_file = lock(JOBS, seconds=2)  # `slipway-gpu check` holds it for a moment
    if lock_file is None:
        print("slipway-gpu: another watchdog runs on this node", file=sys.stderr)
        return 1
    with lock_file:
        Watch(settings.load().margin, _node()).run()
    return 0


def _health() -> None:
    _print_lines(Node(_node()).health())


def _unkillable() -> None:
    _print_lines(Node(_node()).unkillable(int(os.environ["SLURM_JOB_ID"])))


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        print(line, flush=True)


def _check() -> int:
    worst = 0
    for mark, text in check.check():
        print(MARKS[mark], untrusted.printable(text))
        worst = max(worst, mark == "wrong")
    return worst


def _gres() -> None:
    config = settings.load()
    nvml = Nvml()
    try:
        lines = gres.gres_conf(_node(), nvml.devices(), config.kinds, config.context)
        print(*lines, sep="\n")
    finally:
        nvml.close()


def _node() -> str:
    """Return this node's name in Slurm, by default the short host name."""
    return os.environ.get("SLURMD_NODENAME") or platform.node().split(".")[0]
