"""What may be chosen of Slurm's own options, and what accounts have left."""

from __future__ import annotations

from portal.errors import FieldError, Forbidden, InvalidRequest
from portal.web.api import guarded
from portal.web.api.choice.models import (
    AccountListOut,
    AccountOut,
    ChoiceQuery,
    EverybodyQuery,
    LaunchOptionsOut,
)
from portal.web.api.operation import operation
from portal.web.context import cluster_view, person, services
from portal.web.http.body import read_query

blueprint = guarded("choice", for_services=True)


@blueprint.get("/launch-options")
@operation(
    "Accounts, QOS, reservations and features to choose", LaunchOptionsOut, query=ChoiceQuery
)
def list_launch_options() -> LaunchOptionsOut:
    """What the caller may choose of Slurm's own options, given what is chosen already."""
    asked, cluster, now = read_query(ChoiceQuery), cluster_view(), services().clock()
    found = cluster.launch_options(person().name, asked.resource_group, asked.options, now)
    if asked.resource_group and not found.group:
        # In the words of a launch if there are some: that only root may use it, for one.
        name = asked.resource_group
        refused = cluster.option_problems(person().name, name, asked.options, now)
        text = "this resource group is not open to you"
        raise InvalidRequest(refused or [FieldError("resource_group", text)])
    problems = cluster.option_problems(person().name, found.group, asked.options, now)
    return LaunchOptionsOut.of(found, problems)


@blueprint.get("/accounts")
@operation("Accounts: what is used and left of their limits", AccountListOut, query=EverybodyQuery)
def list_accounts() -> AccountListOut:
    """The caller's accounts and those above them; for administrators also all of them."""
    everybody = read_query(EverybodyQuery).everybody
    if everybody and not person().admin:
        raise Forbidden("Only administrators see the accounts of everybody.")
    found = cluster_view().account_use(person().name, everybody)
    return AccountListOut(accounts=[AccountOut.of(one) for one in found])
