"""The description of a session's job, from which its batch script is rendered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from portal.core.apps.catalog import Image
from portal.core.launch.mounts import MountPoint, mount_points, storage_of
from portal.core.launch.own_image import NO_OWN_IMAGES, ImageJob, OwnImageRules, image_job
from portal.core.session.session import Home, Session
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions


@dataclass(frozen=True)
class JobSettings:
    """Site settings that apply to all sessions' jobs."""

    template: str
    """Text of the batch script's template."""
    toolkit: str
    directory: str
    callback: str
    gateway_ports: tuple[int, int]
    heartbeat_seconds: int
    storage: str
    """Path of users' storage folders (core/launch/mounts.py)."""
    callback_minutes: int = 5
    """Minutes for which a runner tries to reach the portal for the first time."""
    dotfiles: tuple[str, ...] = ()
    """Files in the user's home that are copied into each session's new home."""
    home: Home = Home.SESSION
    """The home directory of new sessions."""
    own_images: OwnImageRules = NO_OWN_IMAGES


def build_job(
    session: Session, image: Image, rules: JobSettings, now: datetime | None = None
) -> JobDescription:
    """Describe the session's job for a submission at `now`."""
    delay = (session.begin - now).total_seconds() if session.begin and now else 0
    own_home = session.home is Home.PERSISTENT
    return JobDescription(
        session=session.id,
        user=session.owner,
        cpus=session.cpus,
        memory_mb=session.memory_mb,
        partition=session.partition,
        options=session.slurm,
        time_limit=session.time_limit,
        begin_seconds=max(math.ceil(delay), 0),
        gres=session.gres,
        image=image.path,
        toolkit=rules.toolkit,
        directory=rules.directory,
        mounts=mount_points(session.owner, session.mounts, rules.storage),
        own_storage=storage_of(session.owner, rules.storage) if own_home else "",
        dotfiles=() if own_home else rules.dotfiles,
        own_image=image_job(session.owner, session.image, rules.own_images, rules.storage)
        if session.image
        else None,
    )


@dataclass(frozen=True)
class JobDescription:
    """The values for the batch script; memory in MiB, the time limit in minutes."""

    session: str
    user: str
    cpus: int
    memory_mb: int
    partition: str | None
    time_limit: int | None
    image: str
    toolkit: str
    directory: str
    """Directory of sessions and logs, relative to the user's home."""
    options: SlurmOptions = NO_OPTIONS
    begin_seconds: int = 0
    """Seconds after submission before which the job must not start. Not a time of day: Slurm reads
    those in the login node's time zone, which the portal does not know."""
    gres: str = ""
    """The GPU request, the value of sbatch's --gres; "" for none."""
    own_storage: str = ""
    """The path of the user's storage folders in a session with the user's home; else ""."""
    mounts: tuple[MountPoint, ...] = ()
    dotfiles: tuple[str, ...] = ()
    """Files copied into the session's new home; relative to the user's home."""
    own_image: ImageJob | None = None
    """The owner's own image; None for one of the site's."""
