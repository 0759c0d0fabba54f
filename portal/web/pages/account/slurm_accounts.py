"""The page of a person's Slurm accounts: what is used, what is left, and the fair share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flask import render_template
from flask.typing import ResponseReturnValue

from portal.core.cluster.limits import Association, Limits, Minutes
from portal.web.context import person, services
from portal.web.pages.blueprint import blueprint

_RESETS = {
    "DAILY": "every day",
    "WEEKLY": "every week",
    "MONTHLY": "every month",
    "QUARTERLY": "every quarter",
    "YEARLY": "every year",
}
_MINUTES_OF_DAY = 24 * 60


@dataclass(frozen=True)
class Budget:
    """One limit over time: what of it is used and left, in hours."""

    what: str
    used: float | None
    """None if it is not known."""
    total: float

    @property
    def left(self) -> float | None:
        """What is left; never less than nothing."""
        return None if self.used is None else max(0.0, self.total - self.used)


@dataclass(frozen=True)
class AccountView:
    """One account as its members see it."""

    name: str
    title: str
    default: bool
    of_all: Sequence[Budget]
    """Limits of everybody in the account together."""
    own: Sequence[Budget]
    """Limits of this person in the account."""
    fair_share: str


def account_views(user: str, limits: Limits) -> list[AccountView]:
    """The accounts of a user, the default one first."""
    own: dict[str, Association] = {}
    for one in limits.associations:
        if one.user == user:
            own.setdefault(one.account, one)
    whole = {one.account: one for one in limits.associations if not one.user}
    usual = limits.default_accounts.get(user, "")
    found = [_view(one, whole.get(name), name == usual) for name, one in own.items()]
    return sorted(found, key=lambda view: (not view.default, view.name))


def _view(own: Association, account: Association | None, default: bool) -> AccountView:
    title = account.description if account else ""
    return AccountView(
        name=own.account,
        title=title if title.lower() != own.account.lower() else "",
        default=default,
        of_all=list(_budgets(account.total, account.used)) if account else [],
        own=list(_budgets(own.total, own.used)),
        fair_share=fair_share_words(own.fair_share),
    )


def _budgets(total: Minutes, used: Minutes) -> Iterable[Budget]:
    pairs = (
        ("core hours", total.cpus, used.cpus, 60),
        ("GiB hours of memory", total.memory_mb, used.memory_mb, 60 * 1024),
        ("GPU hours", total.gpus, used.gpus, 60),
        ("shard hours", total.shards, used.shards, 60),
    )
    for what, most, spent, unit in pairs:
        if most is not None:
            yield Budget(what, None if spent is None else spent / unit, most / unit)


def fair_share_words(factor: float | None) -> str:
    """What the fair-share factor means for the next job; "" if it is not known."""
    if factor is None:
        return ""
    if factor >= 2 / 3:
        return "little was used lately, so your jobs start sooner than most"
    if factor >= 1 / 3:
        return "about as much was used lately as the share is"
    return "much was used lately, so others' jobs start before yours"


def reset_words(limits: Limits) -> str:
    """Until when what is used counts."""
    if when := _RESETS.get(limits.usage_reset.upper()):
        return f"What is used starts at nothing again {when}."
    if limits.decay_minutes:
        days = limits.decay_minutes / _MINUTES_OF_DAY
        return f"What is used is forgotten with time: after {days:g} days half of it counts."
    return "What is used counts until an administrator resets it."


@blueprint.get("/account/slurm")
def slurm_accounts() -> ResponseReturnValue:
    """The page."""
    limits = services().cluster.limits()
    return render_template(
        "slurm_accounts.html",
        person=person(),
        known=limits is not None and limits.accounting,
        read=limits is not None,
        accounts=account_views(person().name, limits) if limits else [],
        resets=reset_words(limits) if limits else "",
    )
