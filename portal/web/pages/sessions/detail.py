"""The page of one session: its request, resources, apps, use, log and timeline."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from flask import flash, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.admin.timeline import Moment
from portal.core.files.in_session import location_of
from portal.core.launch.mounts import Mount, storage_of
from portal.core.session.retention import Retention, retention
from portal.core.session.session import OVER, Session, State, path_in_session
from portal.core.session_job.samples import SECONDS, Point
from portal.errors import Conflict, InvalidRequest
from portal.node.common.folder_name import HOME
from portal.web.context import person, polled, reads_together, services, shown_until
from portal.web.numbers import trim
from portal.web.pages.apps.cards import app_launcher
from portal.web.pages.blueprint import blueprint
from portal.web.pages.listing import Parts, render_parts
from portal.web.pages.sessions.chart import Chart, TableRow, charts_of, table_of
from portal.web.pages.sessions.rows import SessionView, session_views
from portal.web.pages.sessions.warnings import shown_until_next_change

SAMPLE_LATE = 5.0
"""Seconds after which a sample that is due is looked for."""
POINTS = 240
"""Points of a chart."""
PARTS = ("_session_head.html", "_session_use.html", "_session_facts.html")
"""The parts that the page polls; each is one element of the page."""


def _source(mount: Mount, storage: str) -> str:
    if mount.owner:
        return f"{mount.name}, shared by {mount.owner}"
    return "the home directory" if mount.folder == HOME else f"{storage}/{mount.folder}"


@dataclass(frozen=True)
class FolderView:
    """One mounted folder."""

    path: str
    """In the session."""
    source: str
    """On the cluster."""
    read_only: bool
    location: str
    """On the Files page of its user."""


@dataclass(frozen=True)
class SessionPage:
    """View model of the page of a session."""

    row: SessionView
    points: list[Point]
    moments: list[Moment]
    extension_minutes: int
    """Minutes of the next possible extension; 0 for none."""

    @property
    def session(self) -> Session:
        """The session."""
        return self.row.session

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.session.state in OVER

    @property
    def kept(self) -> Retention:
        """The files and folders that stay at its end."""
        return retention(self.session)

    @property
    def folders(self) -> list[FolderView]:
        """Its mounted folders."""
        storage = storage_of(self.session.owner, services().settings.sessions.storage).rstrip("/")
        storage = storage if storage.startswith("/") else f"~/{storage}"
        return [
            FolderView(
                path_in_session(self.session, mount, services().settings.sessions.storage),
                _source(mount, storage),
                mount.read_only,
                location_of(mount),
            )
            for mount in self.session.mounts
        ]

    @property
    def peak_mb(self) -> float | None:
        """The peak of its memory use."""
        peak = self.session.memory_peak
        return None if peak is None else peak / 2**20

    @property
    def charts(self) -> list[Chart]:
        """Its use over time."""
        return charts_of(self.session, self.points)

    @property
    def table(self) -> list[TableRow]:
        """Its use over time as a table."""
        return table_of(self.charts, self.points)

    @property
    def ssh(self) -> bool:
        """Whether its owner can connect by SSH."""
        return any(app.kind == "ssh" for app in self.row.apps)


def _page_of(session_id: str) -> SessionPage:
    reader, sessions = person(), services().sessions
    session = sessions.get(reader, session_id)
    return SessionPage(
        row=session_views(reader, [session])[0],
        points=sessions.use_over_time(reader, session_id, POINTS),
        moments=sessions.timeline(reader, session_id),
        extension_minutes=services().lifecycle.next_extension(session),
    )


def _parts(page: SessionPage) -> Parts:
    """The parts that the page polls."""
    status = services().cluster.slurm_status()
    return render_parts(PARTS, page=page, row=page.row, status=status, person=person())


@blueprint.get("/sessions/<session_id>")
@reads_together(cluster=True)
def session(session_id: str) -> ResponseReturnValue:
    """The page."""
    return _show(session_id)


def _show(
    session_id: str, name: str = "", problem: str = "", status: int = 200
) -> ResponseReturnValue:
    page = _page_of(session_id)
    parts = _parts(page)
    own_apps = page.row.is_own and not page.over
    html = render_template(
        "session.html",
        page=page,
        row=page.row,
        s=page.session,
        parts=parts.html,
        mark=parts.mark,
        launcher=app_launcher(person(), session_id) if own_apps else None,
        key=secrets.token_urlsafe(16),
        preset_name=name or page.session.name,
        problem=problem,
        person=person(),
    )
    return make_response(html, status)


@blueprint.get("/sessions/<session_id>/now")
@polled(cluster=True)
def session_now(session_id: str) -> ResponseReturnValue:
    """The parts that the page polls; 204 if the browser already has them."""
    page = _page_of(session_id)
    shown_until_next_change([page.session])
    shown_until(_next_sample(page))
    return _parts(page).answer()


def _next_sample(page: SessionPage) -> datetime | None:
    """When the next sample of a running session can be drawn; storing one counts as no change."""
    last = page.points[-1].sample.until if page.points else page.session.ready
    if page.session.state is not State.RUNNING or last is None:
        return None
    due, now = last + timedelta(seconds=SECONDS), services().clock()
    # The longer it is overdue, the less often: its node may be silent for hours.
    return max(due, now) + max(timedelta(seconds=SAMPLE_LATE), now - due)


@blueprint.post("/sessions/<session_id>/preset")
def save_as_preset(session_id: str) -> ResponseReturnValue:
    """Save this session's launch request as a preset."""
    name = trim(request.form.get("preset", ""))
    body = services().sessions.clone_body(person(), session_id)
    body.pop("name", None)
    try:
        launch = services().launch_checks.parse(body)
        services().presets.save(person(), name, launch, replace=False)
    except InvalidRequest as error:
        return _show(session_id, name, error.errors[0].message, error.status)
    except Conflict as error:
        return _show(session_id, name, error.text, error.status)
    flash(f"Saved as the preset {name}.")
    return redirect(f"/sessions/{session_id}", 303)
