"""The two bars of a person: for pages and the REST API."""

from __future__ import annotations

from portal.core.access import Person
from portal.core.usage import GroupUse, group_use
from portal.web.context import services


def use_of(person: Person, group: str | None) -> GroupUse | None:
    """What a person holds in a group (default: the usual one); None when it is not open to them."""
    status = services().sessions.status
    return group_use(person.name, group, status.partitions(), status.limits(), status.use())
