"""[batch]: the command `slipway sbatch` on login and compute nodes."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from portal.config.base import FROZEN

Folder = Annotated[str, Field(pattern=r"^/[^\x00-\x1f]+$")]


class BatchSettings(BaseModel):
    """Batch jobs in images."""

    model_config = FROZEN

    settings_file: str = Field(
        "",
        description="File that the worker keeps current for the command on login nodes, on storage "
        "that they share; empty: none (slipway render batch).",
    )
    command: str = Field(
        "/usr/local/bin/slipway", description="Path of the command on login and compute nodes."
    )
    binds: tuple[Folder, ...] = Field(
        (), description="Folders of the nodes that jobs see at the same path in any image."
    )
    history_days: int = Field(
        7, ge=0, description="Days before the first start whose jobs are read from accounting."
    )
    jobs_days: int = Field(
        90,
        ge=1,
        description="Days that jobs are listed after their end; each needs 0.7 KB of the "
        "database (see `slipway check`). Slurm's accounting keeps them anyway.",
    )
    tasks_days: int = Field(
        7,
        ge=1,
        description="Days that completed and cancelled tasks of arrays are listed after their end. "
        "Then they are only counted; those that failed stay for jobs_days.",
    )
