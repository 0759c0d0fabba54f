"""Limits in time of accounts: what their members have used, what is left, and until when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from portal.core.cluster.limits import Association, Limits, Minutes, line_of


@dataclass(frozen=True)
class Budget:
    """One resource of a GrpTRESMins, in hours."""

    resource: str
    """"cpus", "gpus", "shards" or "memory" (GiB times hours)."""
    total: float
    used: float | None
    """None if Slurm has not said it."""

    @property
    def left(self) -> float | None:
        """What is left; never less than nothing, and None if it is not known."""
        return None if self.used is None else max(round(self.total - self.used, 2), 0.0)

    @property
    def unit(self) -> str:
        """As in "core hours"."""
        return _UNITS[self.resource]

    @property
    def words(self) -> str:
        """As in "12 of 1000 core hours left"."""
        if self.left is None:
            return f"{_number(self.total)} {self.unit} at most"
        return f"{_number(self.left)} of {_number(self.total)} {self.unit} left"


@dataclass(frozen=True)
class AccountUse:
    """One account: its budgets, its shares, and how its use is forgotten."""

    account: str
    description: str
    parent: str
    default: bool
    """Whether it is the default account of the user who asks."""
    member: bool
    """Whether that user has an association in it, rather than below it."""
    budgets: tuple[Budget, ...]
    """Of everybody in the account and below it together."""
    own_budgets: tuple[Budget, ...]
    """Of the user alone."""
    forgotten: str
    """When what was used stops counting, in words."""
    shares: int | None
    fair_share: float | None
    """The user's own factor, from 0 to 1; for accounts of others the account's."""


_UNITS = {
    "cpus": "core hours",
    "gpus": "GPU hours",
    "shards": "shard hours",
    "memory": "GiB hours",
}
_PERIODS = {
    "NOW": "It was set back when Slurm's accounting started.",
    "DAILY": "It is set back every day.",
    "WEEKLY": "It is set back every week.",
    "MONTHLY": "It is set back on the first of each month.",
    "QUARTERLY": "It is set back every quarter.",
    "YEARLY": "It is set back every year.",
}


def account_use(user: str, limits: Limits | None, everybody: bool = False) -> list[AccountUse]:
    """The accounts of a user with those above them, or all of them; sorted by name."""
    if limits is None:
        return []
    rows = limits.accounts
    own = {one.account: one for one in limits.users.get(user, ())}
    wanted = set(rows) | set(own) if everybody else set(_line(own, rows))
    return [
        _use(name, rows.get(name), own.get(name), user, limits)
        for name in sorted(wanted)
        if name != "root" or everybody
    ]


def budgets(total: Minutes, used: Minutes) -> tuple[Budget, ...]:
    """The resources that a GrpTRESMins limits."""
    pairs = (
        ("cpus", total.cpus, used.cpus, 60),
        ("gpus", total.gpus, used.gpus, 60),
        ("shards", total.shards, used.shards, 60),
        ("memory", total.memory_mb, used.memory_mb, 60 * 1024),
    )
    return tuple(
        Budget(name, round(most / size, 2), None if spent is None else round(spent / size, 2))
        for name, most, spent, size in pairs
        if most is not None
    )


def forgotten(limits: Limits) -> str:
    """When what was used stops counting, in one sentence."""
    if period := _PERIODS.get(limits.usage_reset.upper()):
        return period
    if limits.decay_minutes:
        days = limits.decay_minutes / 1440
        span = f"{_number(days)} days" if days >= 1 else f"{limits.decay_minutes} minutes"
        return f"Half of it is forgotten every {span}."
    return "It is never set back."


def remaining(account: str, limits: Limits) -> str:
    """What the tightest budget of an account and those above it has left; "" without one."""
    found = [budget for row in line_of(account, limits) for budget in budgets(row.total, row.used)]
    tightest: dict[str, Budget] = {}
    for one in found:
        if one.resource not in tightest or _most(one) < _most(tightest[one.resource]):
            tightest[one.resource] = one
    return ", ".join(one.words for one in tightest.values())


def spent(account: str, limits: Limits) -> str:
    """That nothing of an account starts, since it or one above it has used up a budget; else ""."""
    if "limits" not in limits.enforced:
        return ""
    for row in line_of(account, limits):
        for one in budgets(row.total, row.used):
            if one.left is not None and not one.left:
                return (
                    f"Account {row.account} has used up its {_number(one.total)} "
                    f"{_UNITS[one.resource]}: a session waits until it has some again. "
                    f"{forgotten(limits)}"
                )
    return ""


def _most(budget: Budget) -> float:
    """The most that can be left of it."""
    return budget.total if budget.left is None else budget.left


def _line(own: Iterable[str], rows: Mapping[str, Association]) -> Iterator[str]:
    """These accounts and those above them, each once."""
    seen: set[str] = set()
    for first in own:
        name = first
        while name and name not in seen:
            seen.add(name)
            yield name
            name = rows[name].parent if name in rows else ""


def _use(
    name: str, row: Association | None, own: Association | None, user: str, limits: Limits
) -> AccountUse:
    limited = row or Association(name)
    found = budgets(limited.total, limited.used)
    alone = budgets(own.total, own.used) if own else ()
    return AccountUse(
        account=name,
        description=limited.description,
        parent=limited.parent,
        default=limits.default_accounts.get(user) == name,
        member=own is not None,
        budgets=found,
        own_budgets=alone,
        forgotten=forgotten(limits) if found or alone else "",
        shares=limited.shares,
        fair_share=own.fair_share if own else limited.fair_share,
    )


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
