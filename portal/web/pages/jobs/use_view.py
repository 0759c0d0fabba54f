"""View model of a job's usage."""

from __future__ import annotations

from dataclasses import dataclass

from portal.core.jobs.job_usage import (
    JobUsage,
    advice,
    cores_words,
    cpu_words,
    memory_words,
    percent,
)
from portal.core.units import format_cores, rounded_size


@dataclass(frozen=True)
class Meter:
    """One figure with a bar."""

    title: str
    text: str
    share: float | None
    """Percent of the job's resources; None means no bar."""


@dataclass(frozen=True)
class UseView:
    """The panel of a job's usage."""

    usage: JobUsage

    @property
    def meters(self) -> list[Meter]:
        """The meters of CPU, memory and GPU; after its end, of the whole run."""
        meters = [self._cpu(), self._memory(), *self._gpu()]
        return [meter for meter in meters if meter is not None]

    @property
    def sentences(self) -> list[str]:
        """The same in words, with advice for the next submission."""
        usage = self.usage
        mean = cpu_words(usage) if usage.final or usage.cores_now is not None else ""
        return [text for text in (mean, memory_words(usage), advice(usage)) if text]

    def _cpu(self) -> Meter | None:
        usage = self.usage
        if usage.final:
            share = usage.cpu_share
            if share is None:
                return None
            return Meter("CPU efficiency", f"{percent(share)} of its cores' time", share * 100)
        busy = usage.cores_now if usage.cores_now is not None else usage.cores_mean
        if busy is None or not usage.cores:
            return None
        when = "now" if usage.cores_now is not None else "on average"
        text = f"{cores_words(min(busy, usage.cores))} of {format_cores(usage.cores)} busy {when}"
        return Meter("CPU", text, min(busy / usage.cores, 1) * 100)

    def _memory(self) -> Meter | None:
        usage = self.usage
        used = usage.all_peak if usage.final else usage.memory
        if used is None:
            return None
        mb = used / 2**20
        of = f" of {rounded_size(usage.memory_mb)}" if usage.memory_mb else ""
        when = "at most" if usage.final else "now"
        share = min(mb / usage.memory_mb, 1) * 100 if usage.memory_mb else None
        return Meter("Memory", f"{rounded_size(mb)}{of} {when}", share)

    def _gpu(self) -> list[Meter]:
        usage, meters = self.usage, []
        if usage.gpu_percent is not None:
            text = f"{usage.gpu_percent:.0f} % of one GPU"
            meters.append(Meter("GPU", text, min(usage.gpu_percent, 100.0)))
        if usage.gpu_memory is not None:
            meters.append(Meter("GPU memory", rounded_size(usage.gpu_memory / 2**20), None))
        return meters
