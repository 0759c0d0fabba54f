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
    """The settings of Slurm that the portal depends on."""

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
    values = {match["name"]: match["value"].strip() for match in _LINE.finditer(text)}
    if "ClusterName" not in values:
        raise UnexpectedOutput("scontrol: no ClusterName")
    storage = _plugin(values.get("AccountingStorageType", ""))
    clock = _CLOCK.search(text)
    return Config(
        cluster=values["ClusterName"],
        enforced=names(values.get("AccountingStorageEnforce", "")) if storage else (),
        tracked=names(values.get("AccountingStorageTRES", "")),
        accounting=bool(storage),
        private=names(values.get("PrivateData", "").lower()),
        preempt_type=_plugin(values.get("PreemptType", "")) or "none",
        preempt_mode=values.get("PreemptMode", "").lower(),
        usage_reset=values.get("PriorityUsageResetPeriod", ""),
        decay_minutes=parse_minutes(values.get("PriorityDecayHalfLife", "")),
        site=replace(_site(values), clock=int(clock[1]) if clock else None),
    )


def _site(values: dict[str, str]) -> Site:
    container = values.get("JobContainerType") or values.get("NamespaceType") or ""
    return Site(
        cluster=values["ClusterName"],
        process_tracking=_plugin(values.get("ProctrackType", "")),
        task_plugins=tuple(filter(None, map(_plugin, names(values.get("TaskPlugin", ""))))),
        constrained=tuple(
            name for name in _CONSTRAINED if values.get(f"Constrain{name}", "").lower() == "yes"
        ),
        prolog_flags=names(values.get("PrologFlags", "").lower()),
        job_container=_plugin(container),
        select=_plugin(values.get("SelectType", "")),
        gres_types=names(values.get("GresTypes", "")),
        return_to_service=number(values.get("ReturnToService", "")),
        part_limits=values.get("EnforcePartLimits", "").upper(),
        priority=_plugin(values.get("PriorityType", "")),
        federation=word(values.get("FederationParameters", "")),
        unkillable=word(values.get("UnkillableStepProgram", "")),
        unkillable_seconds=_seconds(values.get("UnkillableStepTimeout", "")),
        health=word(values.get("HealthCheckProgram", "")),
        health_seconds=_seconds(values.get("HealthCheckInterval", "")) or 0,
    )


def _seconds(text: str) -> int | None:
    """The number in a text such as "60 sec"."""
    return number(text.partition(" ")[0])


def _plugin(text: str) -> str:
    """A plugin's name without its kind: "cgroup" of "task/cgroup"; "" for none."""
    return word(text.rpartition("/")[2])
