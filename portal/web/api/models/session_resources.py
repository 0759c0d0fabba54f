"""Response models for the resources, folders and home of a session."""

from __future__ import annotations

from portal.core.cluster.gpu_offers import Gpus
from portal.core.session.retention import retention
from portal.core.session.session import Home, Session, path_in_session
from portal.core.units import format_size
from portal.web.api.models.base import ResponseModel


class GpuOut(ResponseModel):
    """A share of a GPU."""

    kind: str
    """Its type in Slurm; empty if GPUs have no types."""
    title: str
    memory: str
    sm_percent: int
    """Share of a GPU's multiprocessors, in percent."""

    @classmethod
    def of(cls, session: Session, gpus: Gpus) -> GpuOut | None:
        """Build it; None for a session without a GPU."""
        if session.fgpu is None:
            return None
        return cls(
            kind=session.gpu_kind,
            title=gpus.title(session.gpu_kind),
            memory=format_size(session.gpu_memory_mb or 0),
            sm_percent=session.gpu_sm_percent or 0,
        )


class SessionResourcesOut(ResponseModel):
    """The resources that a session was granted."""

    cpus: int
    memory: str
    shared_memory: str
    fgpu: float | None
    """The granted amount, in fGPU."""
    gpu: GpuOut | None


class MountOut(ResponseModel):
    """A folder that is mounted into a session."""

    folder: str
    read_only: bool
    path: str
    """Mount point in the session."""


class SessionHomeOut(ResponseModel):
    """A session's home directory, and the folders that stay after its end."""

    kind: Home
    """"session": deleted at the end; "persistent": the owner's home directory on the cluster."""
    keeps: list[str]
    """The folders that stay after the end, by name."""
    deletes_files: int | None
    """Files that are deleted at the end, as last reported; hidden ones do not count."""
    deletes_bytes: int | None

    @classmethod
    def of(cls, session: Session) -> SessionHomeOut:
        """Build it."""
        retained = retention(session)
        return cls(
            kind=session.home,
            keeps=list(retained.folders),
            deletes_files=retained.files,
            deletes_bytes=retained.size,
        )


def resources_of(session: Session, gpus: Gpus) -> SessionResourcesOut:
    """The granted resources of a session."""
    return SessionResourcesOut(
        cpus=session.cpus,
        memory=format_size(session.memory_mb),
        shared_memory=format_size(session.shm_mb),
        fgpu=session.fgpu,
        gpu=GpuOut.of(session, gpus),
    )


def mounts_of(session: Session, storage: str) -> list[MountOut]:
    """The mounts of a session; `storage`: the site's setting."""
    return [
        MountOut(
            folder=mount.folder,
            read_only=mount.read_only,
            path=path_in_session(session, mount, storage),
        )
        for mount in session.mounts
    ]
