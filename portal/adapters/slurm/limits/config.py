"""Slurm's own configuration, as scontrol prints it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from portal.adapters.slurm.commands import UnexpectedOutput, parse_minutes
from portal.adapters.slurm.limits.words import names, number, word
from portal.core.cluster.rules.site import Site

_LINE = re.compile(r"^(?P<name>[A-Za-z][\w\[\]]*) *= (?P<value>.*)$", re.MULTILINE)
_CLOCK = re.compile(r"^Configuration data as of ([0-9]{1,11})$", re.MULTILINE)
_CONSTRAINED = ("Cores", "RAMSpace", "SwapSpace", "Devices")


def config_argv() -> list[str]:
    """Slurm's own configuration."""
    return ["scontrol", "show", "config"]


@dataclass(frozen=True)
class Config:
    """The settings of Slurm's that the portal's answers depend on."""

    cluster: str
    enforced: tuple[str, ...]
    tracked: tuple[str, ...]
    accounting: bool
    private: tuple[str, ...]
    preempt_type: str
    preempt_mode: str
    usage_reset: str
    decay_minutes: int | None
    site: Site

    @property
    def fenced(self) -> bool:
        """Whether jobs are confined by cgroups."""
        return "cgroup" in self.site.task_plugins

    @property
    def shared(self) -> bool:
        """Whether Slurm counts usage and calculates fair-share factors."""
        return self.accounting and self.site.priority == "multifactor"


def config_parse(text: str) -> Config:
    """Parse scontrol's output; raises UnexpectedOutput."""
    found = {match["name"]: match["value"].strip() for match in _LINE.finditer(text)}
    if "ClusterName" not in found:
        raise UnexpectedOutput("scontrol: no ClusterName")
    storage = _plugin(found.get("AccountingStorageType", ""))
    clock = _CLOCK.search(text)
    return Config(
        cluster=found["ClusterName"],
        enforced=names(found.get("AccountingStorageEnforce", "")) if storage else (),
        tracked=names(found.get("AccountingStorageTRES", "")),
        accounting=bool(storage),
        private=names(found.get("PrivateData", "").lower()),
        preempt_type=_plugin(found.get("PreemptType", "")) or "none",
        preempt_mode=found.get("PreemptMode", "").lower(),
        usage_reset=found.get("PriorityUsageResetPeriod", ""),
        decay_minutes=parse_minutes(found.get("PriorityDecayHalfLife", "")),
        site=replace(_site(found), clock=int(clock[1]) if clock else None),
    )


def _site(found: dict[str, str]) -> Site:
    container = found.get("JobContainerType") or found.get("NamespaceType") or ""
    return Site(
        cluster=found["ClusterName"],
        process_tracking=_plugin(found.get("ProctrackType", "")),
        task_plugins=tuple(filter(None, map(_plugin, names(found.get("TaskPlugin", ""))))),
        constrained=tuple(
            name for name in _CONSTRAINED if found.get(f"Constrain{name}", "").lower() == "yes"
        ),
        prolog_flags=names(found.get("PrologFlags", "").lower()),
        job_container=_plugin(container),
        select=_plugin(found.get("SelectType", "")),
        gres_types=names(found.get("GresTypes", "")),
        return_to_service=number(found.get("ReturnToService", "")),
        part_limits=found.get("EnforcePartLimits", "").upper(),
        priority=_plugin(found.get("PriorityType", "")),
        federation=word(found.get("FederationParameters", "")),
        unkillable=word(found.get("UnkillableStepProgram", "")),
        unkillable_seconds=_seconds(found.get("UnkillableStepTimeout", "")),
        health=word(found.get("HealthCheckProgram", "")),
        health_seconds=_seconds(found.get("HealthCheckInterval", "")) or 0,
    )


def _seconds(text: str) -> int | None:
    """The number of "60 sec"."""
    return number(text.partition(" ")[0])


def _plugin(text: str) -> str:
    """A plugin's name without its kind: "cgroup" of "task/cgroup"; "" for none."""
    return word(text.rpartition("/")[2])
