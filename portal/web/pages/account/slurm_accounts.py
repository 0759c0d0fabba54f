"""The page of a user's Slurm accounts: their usage, remaining budgets and fair share."""

from __future__ import annotations

from flask import render_template, request
from flask.typing import ResponseReturnValue

from portal.core.cluster.choice.account_use import AccountUse
from portal.web.context import cluster_view, person
from portal.web.pages.blueprint import blueprint


def in_order(uses: list[AccountUse], everybody: bool = False) -> list[AccountUse]:
    """The user's accounts, the default one first, then parents with limits."""
    shown = [use for use in uses if use.member or use.budgets or everybody]
    return sorted(shown, key=lambda use: (not use.default, not use.member, use.account))


def fair_share_words(factor: float | None) -> str:
    """The effect of the fair-share factor on the next job, in words; "" if unknown."""
    if factor is None:
        return ""
    if factor >= 2 / 3:
        return "little was used lately, so your jobs start sooner than most"
    if factor >= 1 / 3:
        return "about as much was used lately as the share is"
    return "much was used lately, so others' jobs start before yours"


@blueprint.get("/account/slurm")
def slurm_accounts() -> ResponseReturnValue:
    """The page; administrators may see the accounts of everybody."""
    limits = cluster_view().limits
    everybody = person().admin and request.args.get("everybody") == "true"
    uses = cluster_view().account_use(person().name, everybody)
    return render_template(
        "slurm_accounts.html",
        person=person(),
        accounting=limits is not None and limits.accounting,
        loaded=limits is not None,
        everybody=everybody,
        accounts=in_order(uses, everybody),
        fair_share_words=fair_share_words,
    )
