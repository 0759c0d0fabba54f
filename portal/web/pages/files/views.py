"""The Files page: areas, the entries of a folder, and single files."""

from __future__ import annotations

from flask import Response, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.errors import PortalError, Starting, visible
from portal.web.context import person, services
from portal.web.gate.data import admit_browser
from portal.web.http.locations import location_after
from portal.web.pages.blueprint import blueprint
from portal.web.pages.files.browse import Folder, Row, crumbs_of, open_folder
from portal.web.pages.files.elsewhere import links_of
from portal.web.pages.files.opening import openings

_QUERY = ("sort", "order", "search", "below", "hidden", "offset")


@blueprint.get("/files/<location:path>")
def files(path: str) -> ResponseReturnValue:  # noqa: ARG001
    """Show a folder, or a file with the query `view`."""
    location = location_after("/files")
    if "view" in request.args:
        return _file(location)
    query = {name: value for name in _QUERY if (value := request.args.get(name, "").strip())}
    try:
        folder = open_folder(services().files, person(), location, query)
    except PortalError as error:
        if error.status == 404 and _is_file(location):
            return redirect(f"/files/{location}?view", 303)
        return _problem(location, error)
    links = links_of(services().settings.files.links, person(), location)
    values = {"openings": openings(person(), location), "links": links}
    return admitted(_render("files.html", folder=folder, **values))


def _is_file(location: str) -> bool:
    try:
        return not services().files.entry(person(), location).is_folder
    except PortalError:
        return False


def _file(location: str) -> ResponseReturnValue:
    try:
        entry = services().files.entry(person(), location)
    except PortalError as error:
        return _problem(location, error)
    if entry.is_folder:
        return redirect(f"/files/{location}", 303)
    crumbs = crumbs_of(location)
    values = {"row": Row(entry), "crumbs": crumbs, "openings": openings(person(), location)}
    return admitted(_render("file.html", location=location, **values))


def _problem(location: str, error: PortalError) -> Response:
    folder = Folder(location, {}, problem=error)
    response = make_response(
        _render("files.html", folder=folder, detail=visible(error.text)), error.status
    )
    if error.status == 503:
        response.headers["Retry-After"] = str(error.retry_seconds)
    response.headers.update(reload_after(error))
    return response


def reload_after(error: PortalError) -> dict[str, str]:
    """The headers by which browsers reload the page while the file server is being started."""
    return {"Refresh": str(error.retry_seconds)} if isinstance(error, Starting) else {}


def _render(template: str, **values: object) -> str:
    hosts = services().settings.files.fetch_hosts
    return render_template(template, person=person(), fetch_hosts=hosts, **values)


def admitted(page: str) -> Response:
    """A page from which the browser may reach its user's file server."""
    response = make_response(page)
    admit_browser(person(), response)
    return response


@blueprint.post("/files-access")
def files_access() -> ResponseReturnValue:
    """Let this browser reach its file server again, after a failed request of a page."""
    response = make_response("", 204)
    admit_browser(person(), response)
    return response
