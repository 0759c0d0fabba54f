"""The start page of the files: areas, and storage folders with their use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flask import render_template
from flask.typing import ResponseReturnValue

from portal.core.auth.person import Person
from portal.core.files.shares import FolderShare, SharedFolder
from portal.core.session.session import Session
from portal.errors import PortalError, visible
from portal.node.common.folder_name import HOME
from portal.web.context import person, services
from portal.web.pages.blueprint import blueprint
from portal.web.pages.files.browse import Row, area_title
from portal.web.pages.files.opening import live_sessions
from portal.web.pages.files.views import admitted, reload_after

STORAGE = "storage"
MOST = 1000
"""The largest number of storage folders shown here; browsing shows all of them."""


@dataclass(frozen=True)
class StorageRow:
    """A storage folder, and the live sessions that have it mounted."""

    row: Row
    sessions: tuple[Session, ...] = ()
    shares: tuple[FolderShare, ...] = ()


@dataclass(frozen=True)
class Area:
    """A storage area."""

    root: str
    text: str
    """Its purpose; for areas in the settings, the path."""
    sessions: tuple[Session, ...] = ()

    @property
    def title(self) -> str:
        """Its name."""
        return area_title(self.root)


def _areas(user: Person, live: list[Session]) -> list[Area]:
    roots = services().settings.files.roots
    return [
        Area("home", "Your home directory on the cluster", _with(live, HOME)),
        Area(STORAGE, "Folders that sessions and jobs can mount"),
        *(Area(root, path.replace("{user}", user.name)) for root, path in roots.items()),
    ]


@blueprint.get("/files")
def files_start() -> ResponseReturnValue:
    """Show the areas and the storage folders."""
    user = person()
    live = live_sessions(user)
    problem, again = "", {}
    folders: list[StorageRow] = []
    try:
        folders = _storage(user, live)
    except PortalError as error:
        problem = visible(error.text)
        again = reload_after(error)
    shared, shared_problem = _shared(user)
    page = render_template(
        "files_start.html",
        person=user,
        areas=_areas(user, live),
        folders=folders,
        shared=shared,
        shared_problem=shared_problem,
        problem=problem,
    )
    return (page, again) if problem else admitted(page)


def _storage(user: Person, live: list[Session]) -> list[StorageRow]:
    query = {"limit": MOST, "hidden": "true"}
    entries = services().files.list(user, STORAGE, query).entries
    rows = [Row(entry) for entry in entries if entry.is_folder]
    mine = services().shares.mine(user)
    return [
        StorageRow(
            row,
            _with(live, row.entry.name),
            tuple(share for share in mine if share.key.folder == row.entry.name),
        )
        for row in rows
    ]


def _shared(user: Person) -> tuple[list[SharedFolder], str]:
    """The folders that others share with the user, or the problem with listing them."""
    try:
        return services().shares.with_me(user), ""
    except PortalError as error:
        return [], visible(error.text)


def _with(sessions: Iterable[Session], folder: str) -> tuple[Session, ...]:
    return tuple(session for session in sessions if any(m.folder == folder for m in session.mounts))
