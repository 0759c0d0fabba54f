"""Usage of accounts and QOS against their limits in time, as slurmctld counts it.

One scontrol query covers all users. Slurm reduces usage gradually (PriorityDecayHalfLife) or resets
it (PriorityUsageResetPeriod), so these numbers, not accounting's, decide whether a job is refused.
With PrivateData=usage, slurmctld leaves out entries that the reader may not see.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from portal.core.cluster.limits import Association, Minutes, Qos

_ASSOCIATION = re.compile(
    r"ClusterName=(?P<cluster>\S*) Account=(?P<account>.*?) UserName=(?P<user>.*?)(?:\([0-9]+\))?"
    r" Partition=(?P<partition>.*?) Priority="
)
_QOS = re.compile(r"QOS=(?P<name>.*?)\([0-9]+\) UsageRaw=")
_SHARES = re.compile(r" SharesRaw/Norm/Level/Factor=\S*/(?P<factor>[0-9.]{1,12}) ")
_TOTAL = re.compile(r" GrpTRESMins=(?P<all>\S*)")
_USED = re.compile(r"(?P<name>[\w/:.-]+)=(?:N|[0-9]+)\((?P<used>[0-9]{1,18})(?:\.[0-9]+)?\)")


def used_argv() -> list[str]:
    """Every association and QOS with its usage, one per line."""
    return ["scontrol", "--oneliner", "show", "assoc_mgr", "flags=assoc,qos"]


@dataclass(frozen=True)
class Used:
    """Usage by association (account, user, partition) and by QOS, and fair-share factors."""

    associations: Mapping[tuple[str, str, str], Minutes] = field(default_factory=dict)
    fair_shares: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    qos: Mapping[str, Minutes] = field(default_factory=dict)

    def of(self, association: Association) -> Association:
        """The association with its usage and fair-share factor."""
        key = (association.account, association.user, association.partition)
        return replace(
            association,
            used=self.associations.get(key, Minutes()),
            fair_share=self.fair_shares.get(key),
        )

    def of_qos(self, qos: Qos) -> Qos:
        """The QOS with its usage."""
        return replace(qos, used=self.qos.get(qos.name, Minutes()))


def used_parse(text: str, cluster: str, *, shared: bool = True) -> Used:
    """Parse scontrol's lines; `shared`: whether Slurm calculates fair-share factors."""
    associations, factors, qos = {}, {}, {}
    for line in text.split("\n"):
        if match := _ASSOCIATION.match(line):
            if match["cluster"] != cluster:
                continue
            key = (match["account"], match["user"], match["partition"])
            associations[key] = _minutes(line[match.end() :])
            # Slurm calculates the factor of users, and prints 0 for accounts.
            factor = _SHARES.search(line, match.end())
            if shared and factor and match["user"]:
                factors[key] = float(factor["factor"])
        elif match := _QOS.match(line):
            qos[match["name"]] = _minutes(line[match.end() :])
    return Used(associations, factors, qos)


def _minutes(line: str) -> Minutes:
    total = _TOTAL.search(line)
    used = _numbers(_USED.finditer(total["all"])) if total else {}
    return Minutes(used.get("cpu"), used.get("mem"), used.get("gres/shard"), used.get("gres/gpu"))


def _numbers(matches: Iterable[re.Match[str]]) -> dict[str, int]:
    return {match["name"]: int(match["used"]) for match in matches}
