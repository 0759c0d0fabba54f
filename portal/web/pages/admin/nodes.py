"""The administrators' list of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flask import render_template, request
from flask.typing import ResponseReturnValue

from portal.core.cluster.node_list import (
    MOST_GROUPS,
    NO_REASON,
    NodeGroup,
    NodePage,
    NodeQuery,
    NodeSort,
    NodeSummary,
)
from portal.core.listing import read_leniently
from portal.web.context import person, services
from portal.web.pages.admin.views import blueprint
from portal.web.pages.listing import PAGE, Noun, SortedView, with_chosen

BY = {"partition": "Partition", "state": "State", "feature": "Feature"}
"""How the summary can be grouped: the filter that a group links to, and its title."""
GROUPS = 20
"""Rows of each summary on the page."""
USERS = 5
"""Users of one node on the page."""


@dataclass(frozen=True)
class NodeListView(SortedView[NodeQuery]):
    """The list of one request."""

    path = "/admin/nodes"
    noun = Noun("node", "nodes")
    page_words = ("Previous", "Next")
    first = {sort.key: sort for sort in (NodeSort.STATE, NodeSort.NAME, NodeSort.MOST_CPUS)}  # noqa: RUF012 - constant

    page: NodePage
    summary: NodeSummary
    grouping: str

    def link(self, **changes: str | None) -> str:
        """The URL of this list with changes; of its rows, which are below the summary."""
        url = super().link(**changes)
        return url if "by" in changes else f"{url}#nodes-title"

    def beside(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        """How the summary is grouped."""
        grouping = changes.get("by", self.grouping) or "partition"
        return {} if grouping == "partition" else {"by": grouping}

    @property
    def groups(self) -> Sequence[NodeGroup]:
        """The groups of the summary."""
        return {
            "partition": self.summary.partitions,
            "state": self.summary.states,
            "feature": self.summary.features,
        }[self.grouping]

    def has_menu(self, name: str) -> bool:
        """Whether the summary has all values of a filter; of more, one is typed."""
        return self.summary.number(name) <= MOST_GROUPS

    def choices(self, name: str) -> list[str]:
        """The values of a filter, including the current one."""
        groups = {
            "partition": self.summary.partitions,
            "state": self.summary.states,
            "feature": self.summary.features,
        }[name]
        return with_chosen(
            getattr(self.query, name), [group.name for group in groups if group.name]
        )

    @property
    def filtered(self) -> bool:
        """Whether any filter is set."""
        return bool(self.query.parameters(sort=None))


@blueprint.get("/nodes")
def nodes() -> ResponseReturnValue:
    """The summary of all nodes, and a page of them with the users who hold them."""
    user, administration = person(), services().administration
    query = read_leniently(NodeQuery, request.args.to_dict(), limit=PAGE)
    grouping = request.args.get("by", "")
    listing = NodeListView(
        query=query,
        page=administration.node_page(user, query),
        summary=administration.nodes(user),
        grouping=grouping if grouping in BY else "partition",
    )
    return render_template(
        "admin_nodes.html",
        part="nodes",
        person=user,
        listing=listing,
        status=services().cluster.slurm_status(),
        by=BY,
        most=GROUPS,
        no_reason=NO_REASON,
        users=USERS,
    )
