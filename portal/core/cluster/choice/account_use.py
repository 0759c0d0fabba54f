"""Budgets of accounts (GrpTRESMins): their use, their remainder, and when use stops counting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from portal.core.cluster.limits import Association, Limits, Minutes, with_ancestors


@dataclass(frozen=True)
class Budget:
    """One resource of a GrpTRESMins, in hours."""

    resource: str
    """"cpus", "gpus", "shards" or "memory" (GiB times hours)."""
    total: float
    used: float | None
    """None if Slurm has not reported it."""

    @property
    def left(self) -> float | None:
        """The amount left, at least 0; None if the use is not known."""
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
    """The budgets and shares of one account, and when its use stops counting."""

    account: str
    description: str
    parent: str
    default: bool
    """Whether it is the default account of the requesting user."""
    member: bool
    """Whether that user has an association in this account, not only in one below it."""
    budgets: tuple[Budget, ...]
    """Shared by all users of the account and of the accounts below it."""
    own_budgets: tuple[Budget, ...]
    """Of the user alone."""
    resets: str
    """When past use stops counting, in words."""
    shares: int | None
    fair_share: float | None
    """The factor of the user's association, from 0 to 1; the account's if the user has none."""


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
    """The accounts of a user and their ancestors, or all accounts; sorted by name."""
    if limits is None:
        return []
    rows = limits.accounts
    associations = {association.account: association for association in limits.users.get(user, ())}
    names = set(rows) | set(associations) if everybody else set(_ancestry(associations, rows))
    return [
        _use(name, rows.get(name), associations.get(name), user, limits)
        for name in sorted(names)
        if name != "root" or everybody
    ]


def budgets(total: Minutes, used: Minutes) -> tuple[Budget, ...]:
    """One budget for each resource that a GrpTRESMins limits."""
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


def usage_reset_text(limits: Limits) -> str:
    """When past use stops counting, in one sentence."""
    if period := _PERIODS.get(limits.usage_reset.upper()):
        return period
    if limits.decay_minutes:
        days = limits.decay_minutes / 1440
        span = f"{_number(days)} days" if days >= 1 else f"{limits.decay_minutes} minutes"
        return f"Half of it is forgotten every {span}."
    return "It is never set back."


def remaining(account: str, limits: Limits) -> str:
    """The tightest budget of each resource in an account and its ancestors; "" for none."""
    all_budgets = [
        budget for row in with_ancestors(account, limits) for budget in budgets(row.total, row.used)
    ]
    tightest: dict[str, Budget] = {}
    for budget in all_budgets:
        if budget.resource not in tightest or _most(budget) < _most(tightest[budget.resource]):
            tightest[budget.resource] = budget
    return ", ".join(budget.words for budget in tightest.values())


def exhausted_warning(account: str, limits: Limits) -> str:
    """A warning if an account or one of its ancestors has used up a budget; else ""."""
    if "limits" not in limits.enforced:
        return ""
    for row in with_ancestors(account, limits):
        for budget in budgets(row.total, row.used):
            if budget.left is not None and not budget.left:
                return (
                    f"Account {row.account} has used up its {_number(budget.total)} "
                    f"{_UNITS[budget.resource]}: a session waits until it has some again. "
                    f"{usage_reset_text(limits)}"
                )
    return ""


def _most(budget: Budget) -> float:
    """The amount left; the whole budget if its use is not known."""
    return budget.total if budget.left is None else budget.left


def _ancestry(accounts: Iterable[str], rows: Mapping[str, Association]) -> Iterator[str]:
    """These accounts and their ancestors, without duplicates."""
    visited: set[str] = set()
    for account in accounts:
        name = account
        while name and name not in visited:
            visited.add(name)
            yield name
            name = rows[name].parent if name in rows else ""


def _use(
    name: str, row: Association | None, association: Association | None, user: str, limits: Limits
) -> AccountUse:
    limited = row or Association(name)
    group_budgets = budgets(limited.total, limited.used)
    own_budgets = budgets(association.total, association.used) if association else ()
    return AccountUse(
        account=name,
        description=limited.description,
        parent=limited.parent,
        default=limits.default_accounts.get(user) == name,
        member=association is not None,
        budgets=group_budgets,
        own_budgets=own_budgets,
        resets=usage_reset_text(limits) if group_budgets or own_budgets else "",
        shares=limited.shares,
        fair_share=association.fair_share if association else limited.fair_share,
    )


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
