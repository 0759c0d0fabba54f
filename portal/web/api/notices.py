"""Announcements and maintenance over the REST API.

All users read them; changes are for administrators, and 404 for others.
"""

from __future__ import annotations

from portal.core.notices.announcements import Announcement, AnnouncementRequest
from portal.core.notices.maintenance import MaintenanceRequest
from portal.web.api import guarded
from portal.web.api.models.base import NoContent
from portal.web.api.models.notices import (
    AnnouncementListOut,
    AnnouncementOut,
    MaintenanceOut,
)
from portal.web.api.operation import IF_MATCH, Reply, expected_tag, operation, tagged
from portal.web.context import person, services
from portal.web.http.body import read_model, read_nothing

blueprint = guarded("notices")


@blueprint.get("/announcements")
@operation("Announcements; for administrators also those planned or over", AnnouncementListOut)
def list_announcements() -> AnnouncementListOut:
    """The current announcements; for administrators also planned and past ones."""
    announcements, now = services().notices.readable(person()), services().clock()
    return AnnouncementListOut(
        announcements=[AnnouncementOut.of(announcement, now) for announcement in announcements]
    )


@blueprint.post("/announcements")
@operation("Write an announcement", AnnouncementOut, status=201, body=AnnouncementRequest)
def create_announcement() -> Reply[AnnouncementOut]:
    """Write an announcement; for administrators."""
    _admit()
    return _reply(services().notices.announce(person(), read_model(AnnouncementRequest)))


@blueprint.get("/announcements/<id>")
@operation("Show an announcement", AnnouncementOut)
def get_announcement(id: str) -> Reply[AnnouncementOut]:
    """One announcement."""
    return _reply(services().notices.announcement(person(), id))


@blueprint.put("/announcements/<id>")
@operation("Replace an announcement", AnnouncementOut, body=AnnouncementRequest, header=IF_MATCH)
def replace_announcement(id: str) -> Reply[AnnouncementOut]:
    """Replace an announcement; for administrators."""
    _admit()
    body = read_model(AnnouncementRequest)
    return _reply(services().notices.change(person(), id, body, expected_tag()))


@blueprint.delete("/announcements/<id>")
@operation("Delete an announcement", NoContent, header=IF_MATCH)
def delete_announcement(id: str) -> NoContent:
    """Delete an announcement; for administrators."""
    _admit()
    read_nothing()
    services().notices.withdraw(person(), id, expected_tag())
    return NoContent()


def _admit() -> None:
    # Before the body is read, so that no response reveals the accepted fields to other users.
    services().administration.admit(person())


def _reply(announcement: Announcement) -> Reply[AnnouncementOut]:
    return tagged(AnnouncementOut.of(announcement, services().clock()), announcement)


@blueprint.get("/maintenance")
@operation("Whether maintenance is going on", MaintenanceOut)
def get_maintenance() -> Reply[MaintenanceOut]:
    """Whether maintenance is going on, and until when."""
    maintenance = services().notices.maintenance()
    return tagged(MaintenanceOut.of(maintenance), maintenance)


@blueprint.put("/maintenance")
@operation(
    "Begin maintenance, or change its end; sessions go on, new ones wait",
    MaintenanceOut,
    body=MaintenanceRequest,
    header=IF_MATCH,
)
def begin_maintenance() -> Reply[MaintenanceOut]:
    """Begin or change maintenance; for administrators."""
    _admit()
    body = read_model(MaintenanceRequest)
    maintenance = services().notices.begin_maintenance(person(), body, expected_tag())
    return tagged(MaintenanceOut.of(maintenance), maintenance)


@blueprint.delete("/maintenance")
@operation("End maintenance", NoContent, header=IF_MATCH)
def end_maintenance() -> NoContent:
    """End maintenance before its time; for administrators."""
    _admit()
    read_nothing()
    services().notices.end_maintenance(person(), expected_tag())
    return NoContent()
