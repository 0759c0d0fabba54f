"""A site's configuration of Slurm, for `slipway check` and for refusals."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Site:
    """Settings of slurm.conf and cgroup.conf on which the portal's guarantees depend."""

    cluster: str = ""
    """ClusterName."""
    process_tracking: str = ""
    """ProctrackType without its prefix: "cgroup", "linuxproc"."""
    task_plugins: tuple[str, ...] = ()
    """TaskPlugin without prefixes: ("cgroup", "affinity")."""
    constrained: tuple[str, ...] = ()
    """Resources that cgroups limit: "Cores", "RAMSpace", "SwapSpace", "Devices"."""
    prolog_flags: tuple[str, ...] = ()
    """PrologFlags, in lower case."""
    job_container: str = ""
    """JobContainerType (since 25.11 NamespaceType) without its prefix: "tmpfs"."""
    select: str = ""
    """SelectType without its prefix: "cons_tres"."""
    gres_types: tuple[str, ...] = ()
    return_to_service: int | None = None
    part_limits: str = ""
    """EnforcePartLimits, in capitals: "NO", "ANY", "ALL"."""
    priority: str = ""
    """PriorityType without its prefix; only "multifactor" counts GrpTRESMins."""
    federation: str = ""
    """FederationParameters; "" if there are none."""
    unkillable: str = ""
    """UnkillableStepProgram; "" if there is none."""
    unkillable_seconds: int | None = None
    """UnkillableStepTimeout."""
    health: str = ""
    """HealthCheckProgram; "" if there is none."""
    health_seconds: int = 0
    """HealthCheckInterval."""
    clock: int | None = None
    """slurmctld's clock when it was read, in seconds since 1970: Slurm's times refer to it."""


def unfenced(fenced: bool) -> str:
    """The reason why a site without cgroups launches nothing; "" on a site with them."""
    if fenced:
        return ""
    return (
        "Slurm does not confine jobs to what they ask for on this cluster (no cgroups: "
        "TaskPlugin=task/cgroup), so a session could take a node's memory and processors from "
        "others. Nothing is launched until an administrator has changed this."
    )
