"""`slipway check`: unusual settings of this site's Slurm, and their consequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from portal.cli.findings import Finding
from portal.core.cluster.choice.access import CLOSED
from portal.core.cluster.inventory import Node
from portal.core.cluster.limits import Limits, Minutes, PartitionAccess
from portal.core.cluster.rules.site import Site
from portal.core.slurm_options import is_group_name

UNKILLABLE = 60
"""Slurm's default UnkillableStepTimeout in seconds."""
MOST_SECONDS_APART = 5
"""Larger differences between clocks make countdowns visibly wrong."""


def check_slurm(limits: Limits, nodes: Sequence[Node], now: datetime) -> Iterator[Finding]:
    """Report everything unusual in Slurm's settings, partitions and nodes."""
    yield from _cluster(limits.site, now)
    yield from _accounting(limits, nodes)
    yield from _fence(limits)
    yield from _jobs(limits.site)
    yield from _nodes_programs(limits.site)
    if limits.preempt_type not in ("", "none"):
        text = (
            f"PreemptType=preempt/{limits.preempt_type} (PreemptMode={limits.preempt_mode}): some "
            "jobs may be ended for others, which is said where they are launched"
        )
        yield Finding(True, text)
    for entry in limits.partitions:
        yield from _partition(entry, limits.preempt_mode)
    yield from _nodes(nodes)


def _cluster(site: Site, now: datetime) -> Iterator[Finding]:
    yield Finding(
        True, f"cluster {site.cluster}: the only one that is used (jobs for others, -M, are not)"
    )
    if site.federation:
        text = (
            f"a federation ({site.federation}): jobs may move to clusters that the portal does not "
            "see; submit sessions with --cluster-constraint, or install a portal for each cluster"
        )
        yield Finding(False, text)
    if site.clock is not None:
        apart = round(site.clock - now.timestamp())
        text = f"clocks of Slurm and the portal differ by {abs(apart)} s"
        differs = abs(apart) > MOST_SECONDS_APART
        advice = ": countdowns are wrong by as much; run chrony or ntpd on both machines"
        yield Finding(not differs, text + (advice if differs else ""))


def _accounting(limits: Limits, nodes: Sequence[Node]) -> Iterator[Finding]:
    if not limits.accounting:
        text = (
            "Slurm has no accounting (AccountingStorageType): no accounts, limits or history, and "
            "ends of jobs are known only for MinJobAge, while they are in the queue; set up "
            "slurmdbd for more"
        )
        yield Finding(False, text)
        return
    if "limits" not in limits.enforced:
        text = (
            "limits are stored but not enforced, so the portal applies none "
            "(AccountingStorageEnforce=associations,limits,qos)"
        )
        yield Finding(False, text)
    hidden = sorted(set(limits.private) - {"cloud", "events"})
    if hidden:
        text = (
            f"PrivateData={','.join(hidden)}: the reader needs AdminLevel=Operator in sacctmgr, "
            "or usage, limits and queue are incomplete"
        )
        # slurmdbd has a separate PrivateData, so either can be hidden without the other.
        visible = bool(nodes) and any(entry.user for entry in limits.associations)
        yield Finding(visible, text)
    totals = [entry.total for entry in limits.associations] + [entry.total for entry in limits.qos]
    if any(total != Minutes() for total in totals) and limits.site.priority != "multifactor":
        text = (
            "GrpTRESMins is set, but Slurm counts nothing for it without "
            "PriorityType=priority/multifactor"
        )
        yield Finding(False, text)


def _fence(limits: Limits) -> Iterator[Finding]:
    if not limits.fenced:
        text = (
            "no cgroups (TaskPlugin lacks task/cgroup): jobs take what they like of a node, so "
            "nothing is launched; set TaskPlugin=task/cgroup,task/affinity and "
            "ProctrackType=proctrack/cgroup"
        )
        yield Finding(False, text)
        return
    site = limits.site
    if site.process_tracking != "cgroup":
        text = (
            f"ProctrackType=proctrack/{site.process_tracking}: processes can survive the end of "
            "their job; set proctrack/cgroup"
        )
        yield Finding(False, text)
    for name, resource in (("Cores", "cores"), ("RAMSpace", "memory")):
        limited = name in site.constrained
        advice = "" if limited else f": jobs may use more; set Constrain{name}=yes (cgroup.conf)"
        yield Finding(limited, f"cgroups limit {resource}{advice}")
    if site.gres_types and "Devices" not in site.constrained:
        text = "cgroups do not hide GPUs of other jobs; set ConstrainDevices=yes (cgroup.conf)"
        yield Finding(False, text)


def _nodes_programs(site: Site) -> Iterator[Finding]:
    """Root's programs on nodes, without which any user can cause a node to be drained."""
    for name, program, script in (
        ("UnkillableStepProgram", site.unkillable, "unkillable.sh"),
        ("HealthCheckProgram", site.health, "health.sh"),
    ):
        advice = (
            f": any user can make a step that cannot be killed, for which Slurm drains the node; "
            f"set it to slurm_plugins/{script}"
        )
        yield Finding(bool(program), f"{name} is {program or 'not set'}{'' if program else advice}")
    most = (site.unkillable_seconds or UNKILLABLE) // 2
    if site.health and not 0 < site.health_seconds <= most:
        text = (
            f"HealthCheckInterval={site.health_seconds}: it has to look before Slurm drains the "
            f"node; set it to {most} seconds or less (half of UnkillableStepTimeout)"
        )
        yield Finding(False, text)


def _jobs(site: Site) -> Iterator[Finding]:
    if site.select and site.select != "cons_tres":
        text = (
            f"SelectType=select/{site.select}: without select/cons_tres a job gets whole nodes, or "
            "no GPU shards"
        )
        yield Finding(False, text)
    if "gpu" in site.gres_types and "shard" not in site.gres_types:
        text = "GresTypes lacks shard: whole GPUs are offered, fractions of them are not"
        yield Finding(True, text)
    if site.return_to_service == 0:
        text = (
            "ReturnToService=0: a restarted node stays down until an administrator resumes it, and "
            "its sessions wait"
        )
        yield Finding(True, text)
    flags = set(site.prolog_flags)
    if site.job_container:
        text = (
            f"jobs have a /tmp of their own (job_container/{site.job_container}), which ends with "
            "them"
        )
        if "contain" in flags:
            yield Finding(True, text)
        else:
            yield Finding(False, f"{text}: it needs PrologFlags=Contain")
    if "x11" in flags:
        yield Finding(True, "PrologFlags=X11: of no use to sessions, whose desktops are in pages")
    if "contain" in flags:
        yield Finding(True, "PrologFlags=Contain: each job has an extern step, which is not shown")


def _partition(entry: PartitionAccess, preempt_mode: str) -> Iterator[Finding]:
    facts = list(_facts(entry, preempt_mode))
    if facts:
        yield Finding(True, f"partition {entry.name}: {'; '.join(facts)}")
    if any(c.isspace() for c in entry.name):
        text = f"partition {entry.name!r} has a space in its name: people quote it in their scripts"
        yield Finding(True, text)
    elif not is_group_name(entry.name):
        text = f"partition {entry.name!r} cannot be chosen here: commas, bars or quotes in its name"
        yield Finding(False, text)


def _facts(entry: PartitionAccess, preempt_mode: str) -> Iterator[str]:
    forced = entry.oversubscribe.startswith("FORCE") and entry.oversubscribe != "FORCE:1"
    # scontrol prints Slurm's own mode for each partition that sets none.
    preempts = entry.preempt_mode not in ("", "off", "cluster", preempt_mode)
    facts = (
        (entry.state == "DOWN", "DOWN, so jobs wait until it is up"),
        (entry.state in CLOSED, f"{entry.state}, so nothing is launched there"),
        (entry.root_only, "for root only, so it is not offered"),
        (
            entry.hidden,
            "hidden (sinfo --all shows it): offered to nobody, used by those who name it",
        ),
        (entry.requires_reservation, "only with a reservation"),
        (entry.least_nodes > 1, f"{entry.least_nodes} nodes at least, so no session fits"),
        (bool(entry.groups), f"only for the groups {', '.join(entry.groups)}"),
        (entry.oversubscribe == "EXCLUSIVE", "every job gets whole nodes, whatever it asks for"),
        (forced, f"OverSubscribe={entry.oversubscribe}: jobs share cores and are slower"),
        (entry.exclusive_user, "nodes serve one user at a time"),
        (preempts, f"jobs may be preempted ({entry.preempt_mode})"),
    )
    return (text for applies, text in facts if applies)


def _nodes(nodes: Iterable[Node]) -> Iterator[Finding]:
    by_partition: dict[str, set[tuple[int, int]]] = {}
    for node in nodes:
        by_partition.setdefault(node.partition, set()).add((node.cpus, node.memory_mb))
        kinds = sorted(f.kind or "without a Type" for f in node.gpus)
        if len(kinds) > 1 and node.partition == _first(node, nodes):
            text = f"node {node.name} has GPUs of several types: {', '.join(kinds)}"
            missing = any(f.kind == "" for f in node.gpus)
            advice = "; give all of them a Type in gres.conf" if missing else ""
            yield Finding(not missing, text + advice)
    for name, sizes in sorted(by_partition.items()):
        if len(sizes) > 1:
            text = (
                f"partition {name} has nodes of {len(sizes)} sizes: what is offered is bounded by "
                "the largest; features (Features= in slurm.conf) let people choose"
            )
            yield Finding(True, text)


def _first(node: Node, nodes: Iterable[Node]) -> str:
    return next(other.partition for other in nodes if other.name == node.name)
