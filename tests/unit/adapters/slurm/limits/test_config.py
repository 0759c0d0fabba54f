"""Slurm's own configuration from the output of real versions, and as other sites have it."""

from __future__ import annotations

import pytest

from portal.adapters.slurm.limits.config import config_parse
from tests.support.recordings import VERSIONS, recorded


@pytest.mark.parametrize("version", VERSIONS)
def test_the_embedded_cluster(version: str) -> None:
    found = config_parse(recorded(version, "config"))
    assert found.accounting and found.fenced and found.shared
    assert (found.cluster, found.private, found.usage_reset) == ("slipway", (), "NONE")
    assert (found.preempt_type, found.preempt_mode) == ("none", "off")
    assert found.decay_minutes == 7 * 1440
    site = found.site
    assert (site.process_tracking, site.task_plugins) == ("cgroup", ("cgroup", "affinity"))
    assert site.constrained == ("Cores", "RAMSpace", "SwapSpace", "Devices")
    assert (site.return_to_service, site.select, site.job_container) == (2, "cons_tres", "")
    assert (site.gres_types, site.part_limits, site.federation) == (("gpu", "shard"), "NO", "")
    assert site.clock and site.clock > 1_700_000_000
    assert (site.unkillable, site.unkillable_seconds) == ("/etc/slurm/unkillable.sh", 60)
    assert (site.health, site.health_seconds) == ("/etc/slurm/health.sh", 20)


def test_another_site() -> None:
    found = config_parse(
        "AccountingStorageType   = accounting_storage/none\n"
        "AccountingStorageEnforce = limits\n"
        "ClusterName             = other\n"
        "EnforcePartLimits       = ALL\n"
        "FederationParameters    = fed_display\n"
        "NamespaceType           = namespace/tmpfs\n"
        "PreemptMode             = GANG,SUSPEND\n"
        "PreemptType             = preempt/partition_prio\n"
        "PrivateData             = jobs,Usage\n"
        "ProctrackType           = proctrack/linuxproc\n"
        "PrologFlags             = Alloc,Contain,X11\n"
        "TaskPlugin              = task/none\n"
    )
    assert not found.accounting and not found.enforced and not found.fenced
    assert found.private == ("jobs", "usage")
    assert (found.preempt_type, found.preempt_mode) == ("partition_prio", "gang,suspend")
    assert found.site.prolog_flags == ("alloc", "contain", "x11")
    assert (found.site.job_container, found.site.federation) == ("tmpfs", "fed_display")
    assert (found.site.part_limits, found.site.clock) == ("ALL", None)
    assert (found.site.unkillable, found.site.health, found.site.health_seconds) == ("", "", 0)
