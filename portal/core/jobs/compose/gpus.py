"""Whether nodes had the GPUs that a job requests: slurmctld forgets GRES during its restart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from portal.core.cluster.inventory import NodeGpus, Partition
from portal.core.jobs.compose.submission import JobRequest
from portal.node.common.gres import parse_gres

NO_GPUS_YET = "Invalid generic resource"
"""sbatch's error for GPUs that do not exist, or not yet after a restart of slurmctld."""
_GRES = re.compile(r"(?:^|\s)--gres(?:=|\s+)(\S+)")
_GPUS = re.compile(r"(?:^|\s)(?:--gpus(?:-per-(?:node|socket|task))?(?:=|\s+)|-G\s*)(\S+)")
_SHARE = re.compile(r"(?:^|\s)--fgpu(?:=|\s)")
_DIRECTIVES = ("#SBATCH", "#SLIPWAY")


@dataclass(frozen=True)
class _GpuRequest:
    """GPUs or shards of one kind on one node; "" for any kind."""

    kind: str
    gpus: int = 0
    shards: int = 0

    def fits_on(self, node: NodeGpus) -> bool:
        kind_matches = self.kind in ("", node.kind)
        return kind_matches and node.gpus >= self.gpus and node.shards >= self.shards


def asks_for_known_gpus(request: JobRequest, script: str, partitions: Iterable[Partition]) -> bool:
    """Whether some node, as last reported, has each of the GPUs that a job requests.

    Reads the request's fields, its typed options and the directives of the script. False if they
    request other GRES than GPUs, or none that can be parsed.
    """
    nodes = [
        node
        for partition in partitions
        if request.resource_group in (None, partition.name)
        for node in partition.gpus
    ]
    try:
        requests = list(_gpu_requests(request, script))
    except ValueError:
        return False
    return bool(requests) and all(any(gpus.fits_on(node) for node in nodes) for gpus in requests)


def _gpu_requests(request: JobRequest, script: str) -> Iterator[_GpuRequest]:
    """The requested GPUs; raises ValueError for other GRES."""
    if request.resources.fgpu is not None:
        yield _GpuRequest(request.resources.gpu_kind or "", gpus=1)
    directives = (line for line in script.split("\n") if line.startswith(_DIRECTIVES))
    for text in (" ".join(request.options), *directives):
        if _SHARE.search(text):
            yield _GpuRequest("", gpus=1)
        for value in _GRES.findall(text):
            for entry in value.split(","):
                yield _of_gres(entry.removeprefix("gres/"))
        for value in _GPUS.findall(text):
            for entry in value.split(","):
                yield _of_gres(f"gpu:{entry}")


def _of_gres(entry: str) -> _GpuRequest:
    """Parse NAME[:TYPE][:COUNT], as in --gres; raises ValueError."""
    gres = parse_gres(entry, default=1)
    if gres.name == "shard":
        return _GpuRequest(gres.type, shards=gres.count)
    if gres.name == "gpu":
        return _GpuRequest(gres.type, gpus=gres.count)
    raise ValueError(gres.name)
