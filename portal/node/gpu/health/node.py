"""Slurm's HealthCheckProgram and UnkillableStepProgram on this node.

The node is drained while its shared GPUs are not watched, and resumed afterwards. Drains by others,
and their reasons, are left alone.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from portal.node.gpu import settings, slices, slurm, untrusted
from portal.node.gpu.cgroups import PROC
from portal.node.gpu.health.fuse import Fuse
from portal.node.gpu.health.lost import end_lost
from portal.node.gpu.health.members import ListMembers, Member, members
from portal.node.gpu.health.unkillable import Freed, Unkillable
from portal.node.gpu.prolog import Ask
from portal.node.gpu.watchdog.heartbeat import problem
from portal.node.gpu.watchdog.processes import Processes

STATE = Path("/run/slipway/gpu/node")
HISTORY, FREED = "known.json", "freed-"
"""Its files: the history of checks, and the time when an unkillable job's connections were
aborted."""
PREFIX = "slipway: "
"""Prefix of the reasons of this program's drains."""
RESTART = 5.0
"""Seconds within which a restarted watchdog works again."""
_KILL_FAILED = re.compile(r"Kill task failed(?: \(JobId=(?P<job>[0-9]+)\b.*)?")
_SINCE = 600.0
"""Seconds for which a drain may be the consequence of an unkillable step."""
LONGEST = 28.0
"""Seconds after which a check starts no further part: the longest part, `end_lost` while Slurm does
not answer, then ends before slurmd ends the program after 60 s."""


@dataclass
class Slurm:
    """Slurm's commands for jobs and nodes."""

    ask: Ask = slurm.ask
    ask_node: Callable[[str], slurm.Node] = slurm.ask_node
    update_node: Callable[..., None] = slurm.update_node


@dataclass
class _History:
    """State that is kept between checks."""

    stuck: list[str] = field(default_factory=list)
    """Marks of processes that could not be killed."""
    problem: str | None = None
    """Drain reason last reported to Slurm, "" for none; None if Slurm's state is unknown."""
    unclear: list[int] = field(default_factory=list)
    """Jobs that Slurm did not report as over."""


class Node:
    """Health checks of this node; every method returns log messages."""

    def __init__(
        self,
        name: str,
        *,
        state: Path = STATE,
        proc: Path = PROC,
        fuse: Fuse | None = None,
        commands: Slurm | None = None,
        watch_problem: Callable[[], str] = problem,
        shares: Callable[[], bool] | None = None,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._state = state
        self._processes = Processes(proc)
        self._proc = proc
        self._fuse = fuse or Fuse(proc=proc)
        self._slurm = commands or Slurm()
        self._problem = watch_problem
        self._shares = shares or shares_gpus
        self._pause = pause
        self._clock = clock

    def health(self) -> list[str]:
        """Free unkillable processes, end lost ones, drain or resume the node."""
        history, deadline = _load(self._state / HISTORY), self._clock() + LONGEST
        messages: list[str] = []
        for part in (self._free, self._watched, self._undrain, self._end_lost):
            if self._clock() > deadline:
                break
            try:
                messages += part(history)
            except Exception as error:  # a failed part must not stop the others
                messages.append(f"{part.__name__.strip('_')}: {error or repr(error)}")
            self._save(HISTORY, vars(history))
        return [untrusted.printable(text) for text in messages]

    def unkillable(self, job: int) -> list[str]:
        """Free the processes of a job whose step does not end.

        Slurm drains the node in any case; the next health check resumes it.
        """

        def list_members() -> list[Member]:
            return [member for member in self._list_members() if member.step.job == job]

        messages = self._freed(list_members, [member.mark for member in list_members()]).messages
        return [untrusted.printable(text) for text in messages]

    def _freed(self, list_members: ListMembers, earlier: list[str]) -> Freed:
        """Free unkillable processes, and store for which jobs this had an effect."""
        unkillable = Unkillable(list_members, self._fuse, self._processes, self._pause, self._clock)
        freed = unkillable.free(earlier)
        for job in {job for job, _ in freed.actions}:
            self._save(f"{FREED}{job}", self._clock())
        return freed

    def _save(self, name: str, value: object) -> None:
        self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
        slices.write_atomically(self._state / name, json.dumps(value) + "\n")

    def _list_members(self) -> list[Member]:
        return list(members(self._processes, self._proc))

    def _free(self, history: _History) -> list[str]:
        freed = self._freed(self._list_members, history.stuck)
        history.stuck = [member.mark for member in freed.stuck]
        return freed.messages

    def _end_lost(self, history: _History) -> list[str]:
        ask, end = self._slurm.ask, self._processes.end
        return end_lost(self._list_members, self._name, end, history.unclear, ask, self._pause)

    def _watched(self, history: _History) -> Iterator[str]:
        """Drain the node while its GPUs are not watched."""
        reason = self._watch_problem() if self._shares() else ""
        if not reason and history.problem == "":
            return
        node = self._slurm.ask_node(self._name)
        # Unknown until Slurm answers: it may get the update while its answer is lost.
        history.problem = None
        self._save(HISTORY, vars(history))
        if reason and not node.drained:
            self._slurm.update_node(self._name, "DRAIN", f"{PREFIX}{reason}")
            yield f"drained {self._name}: {reason}"
        elif not reason and node.drained and node.reason.startswith(PREFIX):
            self._slurm.update_node(self._name, "UNDRAIN")
            yield f"resumed {self._name}, whose reason was: {node.reason}"
        history.problem = reason

    def _watch_problem(self) -> str:
        """Why the GPUs are not watched, unless the watchdog is only being restarted."""
        deadline = self._clock() + RESTART
        while (reason := self._problem()) and self._clock() < deadline:
            self._pause(0.5)
        return reason

    def _undrain(self, _history: _History) -> Iterator[str]:
        """Resume a node that Slurm drained for a step which has ended since it was freed."""
        freed = {file.name[len(FREED) :]: file for file in self._state.glob(f"{FREED}*")}
        for job, file in list(freed.items()):
            if not 0 <= self._clock() - float(untrusted.read(file)) <= _SINCE:
                freed.pop(job).unlink()
        if not freed:
            return
        living = {str(member.step.job) for member in self._list_members() if member.uid}
        node = self._slurm.ask_node(self._name)
        match = _KILL_FAILED.fullmatch(node.reason) if node.drained else None
        job = match["job"] or next(iter(freed)) if match else ""
        if job in freed and job not in living:
            self._slurm.update_node(self._name, "UNDRAIN")
            freed[job].unlink()
            yield f"resumed {self._name}: what could not be killed of job {job} has ended"


def shares_gpus(file: Path = settings.FILE, dev: Path = Path("/dev")) -> bool:
    """Whether this node has shared GPUs, which the watchdog must watch."""
    try:
        kinds = settings.load(file).kinds
    except settings.SettingsError:
        return False  # Prolog grants nothing then
    divided = any(kind.sharing == "shared" for kind in kinds)
    return divided and any(True for _ in dev.glob("nvidia[0-9]*"))


def _load(file: Path) -> _History:
    """Read the history; an empty one from a missing or unreadable file."""
    try:
        return _History(**json.loads(untrusted.read(file)))
    except (OSError, ValueError, TypeError):
        return _History()
