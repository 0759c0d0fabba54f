"""The jobs of this node that have a slice, as tracked by the watchdog."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from portal.node.gpu import slices, slurm, untrusted
from portal.node.gpu.cgroups import has_cgroup
from portal.node.gpu.prolog import Ask
from portal.node.gpu.watchdog.judge import Suspicion

GONE_AFTER = 300.0
"""Seconds after which Slurm is queried for a job with a folder and no processes here."""

Log = Callable[[str], None]


def log_line(text: str) -> None:
    """Print one line to systemd's journal."""
    print(f"slipway-gpu watch: {untrusted.printable(text)}", file=sys.stderr, flush=True)


@dataclass
class Watched:
    """State of a job between two polls."""

    identity: tuple[int, int]
    """Inode and time of the slice file: a requeued job has a new one."""
    slice: slices.JobSlice
    kills: int
    last_seen: float
    """When it last had processes, or Slurm last reported it as running."""
    ended: set[str] = field(default_factory=set)
    """Killed processes, which the driver may still list for a moment."""
    suspicions: dict[str, Suspicion] = field(default_factory=dict)

    def suspicion(self, key: str) -> Suspicion:
        """The suspicion from earlier polls of one GPU, or of its managed memory."""
        return self.suspicions.setdefault(key, Suspicion())

    def forget(self, uuid: str) -> None:
        """Reset the suspicions about a GPU after a failed measurement."""
        for key, suspicion in self.suspicions.items():
            if key.startswith(uuid):
                suspicion.unknown()


class Jobs:
    """All jobs that have a folder on this node."""

    def __init__(self, folder: Path, cgroups: Path, node: str, ask: Ask, log: Log) -> None:
        self._folder = folder
        self._cgroups = cgroups
        self._node = node
        self._ask = ask
        self._log = log
        self._logged: dict[int, str] = {}
        self.watched: dict[int, Watched] = {}

    def follow(self, now: float) -> None:
        """Update for jobs that were added, removed or requeued."""
        present = set(slices.all_jobs(self._folder))
        for job in set(self.watched) - present:
            del self.watched[job]
        self._logged = {job: text for job, text in self._logged.items() if job in present}
        for job in present:
            try:
                self._update(job, now)
            except FileNotFoundError:
                # Prolog or Epilog is changing it, or the job has no slice.
                self.watched.pop(job, None)
            except Exception as error:
                self.watched.pop(job, None)
                self._log_once(job, error)

    def _update(self, job: int, now: float) -> None:
        folder = slices.folder_of(job, self._folder)
        stat = (folder / "slice").stat()
        identity = stat.st_ino, stat.st_mtime_ns
        if job in self.watched and self.watched[job].identity == identity:
            return
        self.watched[job] = Watched(
            identity=identity,
            slice=slices.parse_slice(untrusted.read(folder / "slice")),
            kills=_kills_before(folder / "usage.json"),
            last_seen=now,
        )

    def sweep(self, now: float) -> None:
        """Remove folders of jobs that ended without an Epilog, and of interrupted Prologs.

        Queries Slurm for one job at most, since the answer may take seconds.
        """
        for incomplete in self._folder.glob(".*-*"):
            if now - _changed(incomplete, now) > GONE_AFTER:
                slices.clear(incomplete)
        for job, folder in islice(self._stale(now), 1):
            try:
                self._sweep_job(job, folder, now)
            except FileNotFoundError:
                continue  # Epilog was faster
            except Exception as error:
                self._log_once(job, error)

    def _log_once(self, job: int, error: Exception) -> None:
        """Log an error of a job's folder once."""
        text = f"job {job}: {error}"
        if self._logged.get(job) != text:
            self._log(text)
        self._logged[job] = text

    def _sweep_job(self, job: int, folder: Path, now: float) -> None:
        try:
            over = self._ask(job, self._node).over
        except slurm.NoSuchJob:
            over = True
        except slurm.SlurmError:
            over = False  # no answer does not mean that the job has ended
        if over:
            slices.remove(self._folder, job)
            self.watched.pop(job, None)
            self._log(f"job {job} is over: removed its folder")
        else:
            os.utime(folder, (now, now))
            if job in self.watched:
                self.watched[job].last_seen = now

    def _stale(self, now: float) -> Iterator[tuple[int, Path]]:
        for job in slices.all_jobs(self._folder):
            folder = slices.folder_of(job, self._folder)
            watched = self.watched.get(job)
            last_seen = watched.last_seen if watched else _changed(folder, now)
            if now - last_seen > GONE_AFTER and not has_cgroup(job, self._cgroups):
                yield job, folder


def _kills_before(file: Path) -> int:
    """Read the number of kills that an earlier watchdog counted for the job."""
    try:
        return int(json.loads(untrusted.read(file))["kills"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _changed(folder: Path, now: float) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return now
