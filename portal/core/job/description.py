"""What is handed to Slurm for a session: the job's description, and the runner's instructions."""

from __future__ import annotations

from dataclasses import dataclass

from portal.core.apps.catalog import Image
from portal.core.launch.mounts import MountPoint, mount_points
from portal.core.session.session import Session


@dataclass(frozen=True)
class JobSettings:
    """What the site's settings say about all sessions."""

    template: str
    """Text of the batch script's template."""
    toolkit: str
    directory: str
    callback: str
    gateway_ports: tuple[int, int]
    heartbeat_seconds: int
    storage: str
    """Where users' storage folders lie (core/launch/mounts.py)."""
    dotfiles: tuple[str, ...] = ()
    """Files of the user's home that each session gets copies of."""


def build_job(session: Session, image: Image, rules: JobSettings) -> JobDescription:
    """Describe the job that carries the session."""
    return JobDescription(
        session=session.id,
        user=session.owner,
        cpus=session.cpus,
        memory_mb=session.memory_mb,
        partition=session.partition,
        time_limit=session.time_limit,
        gres=session.gres,
        image=image.path,
        toolkit=rules.toolkit,
        directory=rules.directory,
        mounts=mount_points(session.owner, session.mounts, rules.storage),
        dotfiles=rules.dotfiles,
    )


@dataclass(frozen=True)
class JobDescription:
    """All that the batch script needs; memory in MiB, the time limit in minutes."""

    session: str
    user: str
    cpus: int
    memory_mb: int
    partition: str | None
    time_limit: int | None
    image: str
    toolkit: str
    directory: str
    """Where sessions and logs live, relative to the user's home."""
    gres: str = ""
    """The GPU that is asked for, as sbatch's --gres has it; "" for none."""
    mounts: tuple[MountPoint, ...] = ()
    dotfiles: tuple[str, ...] = ()
    """Files of the user's home, relative to it, that the session's new home gets copies of."""
