"""Request context of every view: the application's services and the current user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from flask import Flask, current_app, g, request

from portal.core.auth.person import Person
from portal.core.changes import EVERYBODY, NOT_SHOWN
from portal.core.cluster_view import ClusterView
from portal.core.site_rules import SiteRules
from portal.errors import Unauthorized
from portal.logs import context as log_context
from portal.services.admin.administration import caller_address
from portal.web.http.unchanged import POLL, Poll

if TYPE_CHECKING:
    from portal.services.assembly import Services

EXTENSION = "slipway"
P = ParamSpec("P")
R = TypeVar("R")


def services() -> Services:
    """The services of the running application."""
    return cast("Services", current_app.extensions[EXTENSION])


def cluster_view() -> ClusterView:
    """The cluster's state for this request; read once per request."""
    if "cluster_view" not in g:
        g.cluster_view = services().cluster.look()
    return cast(ClusterView, g.cluster_view)


def site_rules() -> SiteRules:
    """The site's rules; read once per request."""
    if "site_rules" not in g:
        g.site_rules = services().administration.site_rules()
    return cast(SiteRules, g.site_rules)


def reads_together(*, cluster: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a view that reads the database in one transaction and does no other I/O.

    `cluster`: whether the view shows partitions or limits, which are read before the transaction.
    """

    def decorate(view: Callable[P, R]) -> Callable[P, R]:
        @wraps(view)
        def read(*args: P.args, **kwargs: P.kwargs) -> R:
            if cluster:
                cluster_view().learn_groups(person().name)
            with services().snapshot():
                return view(*args, **kwargs)

        return read

    return decorate


def polled(*, cluster: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a view that a page polls, which is not called while nothing has changed.

    It reads together; see http/unchanged.py. Administrators see everybody's rows, others their own.
    Without `cluster`, it does not show the cluster's use, which changes at all times.
    """

    def decorate(view: Callable[P, R]) -> Callable[P, R]:
        read_together = reads_together(cluster=cluster)(view)

        @wraps(view)
        def poll(*args: P.args, **kwargs: P.kwargs) -> R:
            whose = EVERYBODY if person().admin else person().name
            # Before the content is read: what changes meanwhile is seen by the next poll.
            numbers = services().change_numbers(whose)
            numbers = numbers if cluster else replace(numbers, use=NOT_SHOWN)
            request.environ[POLL] = Poll(whose, numbers)
            return read_together(*args, **kwargs)

        return poll

    return decorate


def shown_until(moment: datetime | None) -> None:
    """Note when this poll's content changes although nothing is stored; see http/unchanged.py."""
    poll = request.environ.get(POLL)
    if moment is not None and isinstance(poll, Poll):
        request.environ[POLL] = replace(poll, until=min(poll.until, moment.timestamp()))


def install(app: Flask) -> None:
    """Record the client address of each request for the audit log."""

    @app.before_request
    def note_address() -> None:
        # Every request sets it, since threads are reused with the previous request's address.
        caller_address.set(request.remote_addr or "")


def set_person(person: Person) -> None:
    """Set the current user; called only by the authentication (login cookie, API token)."""
    g.person = person
    log_context.user.set(person.name)


def person() -> Person:
    """The current user; raises Unauthorized if the request is not authenticated."""
    if "person" not in g:
        raise Unauthorized("Please log in.")
    return cast(Person, g.person)
