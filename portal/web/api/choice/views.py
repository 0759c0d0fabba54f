"""Slurm's launch options that the caller may choose, and the accounts' budgets."""

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
    """The Slurm options that the caller may choose, given the choices so far."""
    query, cluster, now = read_query(ChoiceQuery), cluster_view(), services().clock()
    options = cluster.launch_options(person().name, query.resource_group, query.options, now)
    if query.resource_group and not options.group:
        # The same texts as a launch, if any; for example that only root may use it.
        name = query.resource_group
        refused = cluster.option_problems(person().name, name, query.options, now)
        text = "this resource group is not open to you"
        raise InvalidRequest(refused or [FieldError("resource_group", text)])
    problems = cluster.option_problems(person().name, options.group, query.options, now)
    return LaunchOptionsOut.of(options, problems)


@blueprint.get("/accounts")
@operation("Accounts: what is used and left of their limits", AccountListOut, query=EverybodyQuery)
def list_accounts() -> AccountListOut:
    """The caller's accounts and their parents; for administrators also all accounts."""
    everybody = read_query(EverybodyQuery).everybody
    if everybody and not person().admin:
        raise Forbidden("Only administrators see the accounts of everybody.")
    accounts = cluster_view().account_use(person().name, everybody)
    return AccountListOut(accounts=[AccountOut.of(account) for account in accounts])
