"""The user's last launches, which a new form proposes again."""

from __future__ import annotations

from portal.core.auth.person import Person
from portal.core.session.query import ListQuery, Sort
from portal.core.session.session import Session
from portal.web.context import cluster_view, services

_RECENT = 50
"""Sessions that are read to find the environments used lately."""


def recently_used(person: Person) -> tuple[list[tuple[str, str]], list[str]]:
    """The environments and versions of a user's last launches, and their own images.

    Newest first.
    """
    recent = ListQuery(owner=person.name, sort=Sort.NEWEST, limit=_RECENT)
    sessions = services().sessions.query(person, recent).sessions
    images = dict.fromkeys(session.image for session in sessions if session.image)
    of_site = (s for s in sessions if not s.image)
    return list(dict.fromkeys((s.environment, s.version) for s in of_site)), list(images)


def last_mounts(person: Person) -> dict[str, bool]:
    """The folders of the user's last session."""
    last = _last(person)
    return {mount.folder: mount.read_only for mount in last.mounts} if last else {}


def last_options(person: Person) -> dict[str, str]:
    """Account and QOS of the user's last session, if they may still be chosen.

    Slurm's other options are specific to one piece of work, so they are not proposed again.
    """
    last = _last(person)
    if last is None or not (last.account or last.qos):
        return {}
    offered = cluster_view().launch_options(person.name, None, last.slurm)
    if last.account and last.account not in {offer.name for offer in offered.accounts}:
        return {}
    qos_names = {offer.name for offer in offered.qos}
    return {"account": last.account, "qos": last.qos if last.qos in qos_names else ""}


def _last(person: Person) -> Session | None:
    query = ListQuery(owner=person.name, limit=1)
    return next(iter(services().sessions.query(person, query).sessions), None)
