"""Slurm's HealthCheckProgram and UnkillableStepProgram on this node.

The node drains itself while nobody watches GPUs that are divided, and takes back what it drained:
nothing else's drain, and nobody else's reason.
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
from portal.node.gpu.health.members import Look, Member, members
from portal.node.gpu.health.unkillable import Freed, Unkillable
from portal.node.gpu.prolog import Ask
from portal.node.gpu.watchdog.heartbeat import problem
from portal.node.gpu.watchdog.processes import Processes

STATE = Path("/run/slipway/gpu/node")
KNOWN, FREED = "known.json", "freed-"
"""Files in it: what a check knew, and when connections of an unkillable job were aborted."""
PREFIX = "slipway: "
"""Begins the reasons of drains that are this program's."""
RESTART = 5.0
"""Seconds in which a watchdog that is restarted is back."""
_KILL_FAILED = re.compile(r"Kill task failed(?: \(JobId=(?P<job>[0-9]+)\b.*)?")
_SINCE = 600.0
"""Seconds for which a drain may be the consequence of an unkillable step."""
LONGEST = 28.0
"""Seconds after which a check begins nothing more: the part that takes longest, `end_lost` with a
Slurm that does not answer, is over before slurmd ends the program after 60 s."""


@dataclass
class Slurm:
    """What is asked of Slurm, and told."""

    ask: Ask = slurm.ask
    ask_node: Callable[[str], slurm.Node] = slurm.ask_node
    update_node: Callable[..., None] = slurm.update_node


@dataclass
class _Known:
    """What an earlier check knew."""

    stuck: list[str] = field(default_factory=list)
    """Marks of processes that could not be killed."""
    problem: str | None = None
    """Why nobody watched the GPUs, as Slurm was told; None if it is not known what Slurm knows."""
    unclear: list[int] = field(default_factory=list)
    """Jobs of which Slurm did not say whether they are over."""


class Node:
    """This node, as its own checks see it; every method returns what was done, in words."""

    def __init__(
        self,
        name: str,
        *,
        state: Path = STATE,
        proc: Path = PROC,
        fuse: Fuse | None = None,
        asked: Slurm | None = None,
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
        self._slurm = asked or Slurm()
        self._problem = watch_problem
        self._shares = shares or shares_gpus
        self._pause = pause
        self._clock = clock

    def health(self) -> list[str]:
        """Free what cannot be killed, end what Slurm has lost, drain or resume the node."""
        known, until = _load(self._state / KNOWN), self._clock() + LONGEST
        said: list[str] = []
        for part in (self._free, self._watched, self._undrain, self._end_lost):
            if self._clock() > until:
                break
            try:
                said += part(known)
            except Exception as error:  # one part's failure is not the others'
                said.append(f"{part.__name__.strip('_')}: {error or repr(error)}")
            self._save(KNOWN, vars(known))
        return [untrusted.printable(text) for text in said]

    def unkillable(self, job: int) -> list[str]:
        """Free the processes of a job whose step does not end.

        Slurm drains the node whatever this does, so the next health check takes that back.
        """

        def look() -> list[Member]:
            return [one for one in self._look() if one.step.job == job]

        words = self._freed(look, [one.mark for one in look()]).words
        return [untrusted.printable(text) for text in words]

    def _freed(self, look: Look, earlier: list[str]) -> Freed:
        """Free what cannot be killed, and note for which jobs something was done."""
        unkillable = Unkillable(look, self._fuse, self._processes, self._pause, self._clock)
        freed = unkillable.free(earlier)
        for job in {job for job, _ in freed.done}:
            self._save(f"{FREED}{job}", self._clock())
        return freed

    def _save(self, name: str, value: object) -> None:
        self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
        slices.write_atomically(self._state / name, json.dumps(value) + "\n")

    def _look(self) -> list[Member]:
        return list(members(self._processes, self._proc))

    def _free(self, known: _Known) -> list[str]:
        freed = self._freed(self._look, known.stuck)
        known.stuck = [one.mark for one in freed.stuck]
        return freed.words

    def _end_lost(self, known: _Known) -> list[str]:
        ask, end = self._slurm.ask, self._processes.end
        return end_lost(self._look, self._name, end, known.unclear, ask, self._pause)

    def _watched(self, known: _Known) -> Iterator[str]:
        """Drain the node while its GPUs are not watched."""
        why = self._watch_problem() if self._shares() else ""
        if not why and known.problem == "":
            return
        node = self._slurm.ask_node(self._name)
        # Until the answer is there: Slurm may be told, and its answer be lost.
        known.problem = None
        self._save(KNOWN, vars(known))
        if why and not node.drained:
            self._slurm.update_node(self._name, "DRAIN", f"{PREFIX}{why}")
            yield f"drained {self._name}: {why}"
        elif not why and node.drained and node.reason.startswith(PREFIX):
            self._slurm.update_node(self._name, "UNDRAIN")
            yield f"resumed {self._name}, whose reason was: {node.reason}"
        known.problem = why

    def _watch_problem(self) -> str:
        """Why the GPUs are not watched, unless the watchdog is only being restarted."""
        until = self._clock() + RESTART
        while (why := self._problem()) and self._clock() < until:
            self._pause(0.5)
        return why

    def _undrain(self, known: _Known) -> Iterator[str]:
        """Take back Slurm's drain for a step that ended after its connections were aborted."""
        freed = {file.name[len(FREED) :]: file for file in self._state.glob(f"{FREED}*")}
        for job, file in list(freed.items()):
            if not 0 <= self._clock() - float(untrusted.read(file)) <= _SINCE:
                freed.pop(job).unlink()
        if not freed:
            return
        living = {str(one.step.job) for one in self._look() if one.uid}
        node = self._slurm.ask_node(self._name)
        match = _KILL_FAILED.fullmatch(node.reason) if node.drained else None
        job = match["job"] or next(iter(freed)) if match else ""
        if job in freed and job not in living:
            self._slurm.update_node(self._name, "UNDRAIN")
            freed[job].unlink()
            yield f"resumed {self._name}: what could not be killed of job {job} has ended"


def shares_gpus(file: Path = settings.FILE, dev: Path = Path("/dev")) -> bool:
    """Whether this node divides GPUs, so that somebody has to watch them."""
    try:
        kinds = settings.load(file).kinds
    except settings.SettingsError:
        return False  # Prolog grants nothing then
    divided = any(kind.sharing == "shared" for kind in kinds)
    return divided and any(True for _ in dev.glob("nvidia[0-9]*"))


def _load(file: Path) -> _Known:
    """What was known; nothing from a file that is missing or unreadable."""
    try:
        return _Known(**json.loads(untrusted.read(file)))
    except (OSError, ValueError, TypeError):
        return _Known()
