"""`slipway check`: whether the configured `slurm.reader` can read the queue on this host."""

from __future__ import annotations

from collections.abc import Iterator

from portal.adapters.slurm.commands import UnexpectedOutput
from portal.adapters.slurm.pyslurm.process import PySlurmProcess
from portal.adapters.slurm.queue import squeue_parse
from portal.cli.findings import Finding
from portal.config.cluster import SlurmSettings
from portal.errors import Unavailable


def check_queue_reader(
    slurm: SlurmSettings, process: PySlurmProcess | None = None
) -> Iterator[Finding]:
    """Report problems of pyslurm on this host, if the settings select it."""
    if slurm.reader != "pyslurm":
        return
    process = process or PySlurmProcess(slurm.command_seconds)
    try:
        text = process.queue()
        jobs = None if text is None else len(squeue_parse(text))
    except (Unavailable, UnexpectedOutput) as error:
        yield Finding(False, f"pyslurm reads the queue (slurm.reader): {error}")
        return
    finally:
        process.end()
    if jobs is None:
        advice = 'install what is missing, or set slurm.reader = "commands"'
        text = (
            f"pyslurm reads the queue (slurm.reader): {process.problem}; squeue is used. {advice}"
        )
        yield Finding(False, text)
    else:
        yield Finding(True, f"pyslurm reads the queue on this host ({jobs} jobs)")
