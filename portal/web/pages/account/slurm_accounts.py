"""The page of a person's Slurm accounts: what is used, what is left, and the fair share."""

from __future__ import annotations

from flask import render_template, request
from flask.typing import ResponseReturnValue

from portal.core.cluster.choice.account_use import AccountUse
from portal.web.context import cluster_view, person
from portal.web.pages.blueprint import blueprint


def in_order(uses: list[AccountUse], everybody: bool = False) -> list[AccountUse]:
    """The person's own accounts, the default one first, then those above that limit them."""
    shown = [one for one in uses if one.member or one.budgets or everybody]
    return sorted(shown, key=lambda one: (not one.default, not one.member, one.account))


def fair_share_words(factor: float | None) -> str:
    """What the fair-share factor means for the next job; "" if it is not known."""
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
        known=limits is not None and limits.accounting,
        read=limits is not None,
        everybody=everybody,
        accounts=in_order(uses, everybody),
        fair_share_words=fair_share_words,
    )
