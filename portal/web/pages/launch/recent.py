"""What a user launched lately: what a new form proposes again."""

from __future__ import annotations

from portal.core.auth.person import Person
from portal.core.session.query import ListQuery, Sort
from portal.core.session.session import Session
from portal.web.context import cluster_view, services

_RECENT = 50
"""Sessions that are read to find the environments used lately."""


def recently_used(person: Person) -> tuple[list[tuple[str, str]], list[str]]:
    """The environments and versions of a user's last launches, and their own images.

    The last ones first.
    """
    recent = ListQuery(owner=person.name, sort=Sort.NEWEST, limit=_RECENT)
    found = services().sessions.query(person, recent).sessions
    images = dict.fromkeys(session.image for session in found if session.image)
    of_site = (s for s in found if not s.image)
    return list(dict.fromkeys((s.environment, s.version) for s in of_site)), list(images)


def last_mounts(person: Person) -> dict[str, bool]:
    """The folders of the user's last session."""
    last = _last(person)
    return {mount.folder: mount.read_only for mount in last.mounts} if last else {}


def last_options(person: Person) -> dict[str, str]:
    """Account and QOS of the user's last session, as far as they may still be chosen.

    The rest of Slurm's options belongs to one piece of work, so it is not proposed again.
    """
    last = _last(person)
    if last is None or not (last.account or last.qos):
        return {}
    offered = cluster_view().launch_options(person.name, None, last.slurm)
    if last.account and last.account not in {one.name for one in offered.accounts}:
        return {}
    known = {one.name for one in offered.qos}
    return {"account": last.account, "qos": last.qos if last.qos in known else ""}


def _last(person: Person) -> Session | None:
    query = ListQuery(owner=person.name, limit=1)
    return next(iter(services().sessions.query(person, query).sessions), None)
