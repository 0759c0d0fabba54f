"""[gpu]: the site's GPUs, and how they are shared."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from portal.config.base import FROZEN
from portal.core.cluster.gpu_offers import Gpus
from portal.core.units import Memory
from portal.node.common.fgpu import CONTEXT_MB, Compute, GpuKind, Policy, Sharing, parse_ratio

MAX_SHARDS = 64
SMALLEST = Fraction(1, 100)
"""The smallest step: amounts are compared to three decimals."""
Ratio = Annotated[Fraction, BeforeValidator(parse_ratio)]


class GpuKindSettings(BaseModel):
    """One kind of GPU, and how it is shared."""

    model_config = FROZEN

    name: str = Field(
        "",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$",
        description="Its Type in gres.conf; empty where GPUs have none.",
    )
    title: str = Field("GPU", description="Its name for users.")
    memory: Memory = Field(description='Memory of one GPU (of one MIG device), as "80g".')
    unit: Ratio = Field(
        Fraction(1),
        gt=0,
        le=16,
        description='How much of one GPU 1 fGPU is: a number such as 0.5, or "1/3".',
    )
    step: Ratio = Field(
        Fraction(1, 4),
        ge=SMALLEST,
        le=16,
        description='Step between offered amounts, in fGPU: a number, or "1/3".',
    )
    sharing: Sharing = Field(
        "shared", description="Shared by Slurm's shards, allocated whole, or a MIG device (whole)."
    )
    compute: Compute = Field("limiter", description="What enforces the share of multiprocessors.")
    policy: Policy = Field(
        "strict",
        description="With the limiter: a share is a ceiling, or idle neighbours' shares are lent.",
    )

    @property
    def kind(self) -> GpuKind:
        """The kind as a value of core."""
        return GpuKind(
            name=self.name,
            title=self.title,
            memory_mb=self.memory,
            unit=self.unit,
            step=self.step,
            sharing=self.sharing,
            compute=self.compute,
            policy=self.policy,
        )

    @model_validator(mode="after")
    def _few_shards(self) -> GpuKindSettings:
        if self.sharing == "shared" and self.kind.shards > MAX_SHARDS:
            raise ValueError(
                f"unit {self.unit} in steps of {self.step} divides a GPU into {self.kind.shards} "
                f"shards; at most {MAX_SHARDS} are supported"
            )
        return self


class GpuSettings(BaseModel):
    """The site's GPUs; only those named here are offered."""

    model_config = FROZEN

    kinds: tuple[GpuKindSettings, ...] = Field(
        (),
        description="The site's kinds of GPUs; the first that a resource group has is proposed.",
    )
    margin_mb: int = Field(
        1024,
        ge=0,
        description="MiB that each process of a job may hold beyond the slice: its CUDA context.",
    )
    context_mb: int = Field(
        CONTEXT_MB,
        ge=0,
        description="MiB of a GPU that are kept free for the CUDA context of each session.",
    )

    @property
    def gpus(self) -> Gpus:
        """The kinds as a value of core."""
        return Gpus(tuple(kind.kind for kind in self.kinds))

    @model_validator(mode="after")
    def _have_unique_names(self) -> GpuSettings:
        names = [kind.name for kind in self.kinds]
        if len(set(names)) < len(names) or (len(names) > 1 and "" in names):
            raise ValueError("each of several kinds needs a name of its own, its Type in gres.conf")
        return self
