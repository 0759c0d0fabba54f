"""Whether a job asks only for GPUs that nodes were reported with: Slurm's restart forgets them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from portal.core.cluster.inventory import NodeGpus, Partition
from portal.core.jobs.compose.submission import JobRequest
from portal.node.common.gres import parse_gres

NO_GPUS_YET = "Invalid generic resource"
"""sbatch's words for GPUs that do not exist, or not yet after a restart of slurmctld."""
_GRES = re.compile(r"(?:^|\s)--gres(?:=|\s+)(\S+)")
_GPUS = re.compile(r"(?:^|\s)(?:--gpus(?:-per-(?:node|socket|task))?(?:=|\s+)|-G\s*)(\S+)")
_SHARE = re.compile(r"(?:^|\s)--fgpu(?:=|\s)")
_DIRECTIVES = ("#SBATCH", "#SLIPWAY")


@dataclass(frozen=True)
class _Asked:
    """GPUs or shards of one kind on one node; "" for any kind."""

    kind: str
    gpus: int = 0
    shards: int = 0

    def on(self, node: NodeGpus) -> bool:
        right = self.kind in ("", node.kind)
        return right and node.gpus >= self.gpus and node.shards >= self.shards


def asks_for_known_gpus(request: JobRequest, script: str, partitions: Iterable[Partition]) -> bool:
    """Whether some node has been reported with each of the GPUs that a job asks for.

    Those in the request's fields, its typed options, and the directives of the script. False if it
    asks for something else than GPUs, or for nothing that can be read.
    """
    nodes = [
        node
        for one in partitions
        if request.resource_group in (None, one.name)
        for node in one.gpus
    ]
    try:
        asked = list(_asked(request, script))
    except ValueError:
        return False
    return bool(asked) and all(any(one.on(node) for node in nodes) for one in asked)


def _asked(request: JobRequest, script: str) -> Iterator[_Asked]:
    """What is asked for; raises ValueError for what is no GPU."""
    if request.resources.fgpu is not None:
        yield _Asked(request.resources.gpu_kind or "", gpus=1)
    directives = (line for line in script.split("\n") if line.startswith(_DIRECTIVES))
    for text in (" ".join(request.options), *directives):
        if _SHARE.search(text):
            yield _Asked("", gpus=1)
        for found in _GRES.findall(text):
            for entry in found.split(","):
                yield _of_gres(entry.removeprefix("gres/"))
        for found in _GPUS.findall(text):
            for entry in found.split(","):
                yield _of_gres(f"gpu:{entry}")


def _of_gres(entry: str) -> _Asked:
    """Parse NAME[:TYPE][:COUNT], as in --gres; raises ValueError."""
    gres = parse_gres(entry, default=1)
    if gres.name == "shard":
        return _Asked(gres.type, shards=gres.count)
    if gres.name == "gpu":
        return _Asked(gres.type, gpus=gres.count)
    raise ValueError(gres.name)
