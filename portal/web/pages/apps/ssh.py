"""The SSH page of a session: commands, the host key to verify, and the user's private key."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Response, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.apps.access import AppOptions, AppState
from portal.core.apps.ssh import KEY_FILE, KEY_FOLDER, SshEndpoint
from portal.core.session.session import OVER, Session, State
from portal.core.session.status import shown_reason
from portal.errors import FieldError, InvalidRequest
from portal.web.context import person, services, site_rules
from portal.web.pages.apps.ssh_keys import config_context
from portal.web.pages.blueprint import blueprint
from portal.web.pages.sessions.rows import CHIPS, Chip

_OVER = Chip("Over", "stop-fill", "quiet")
_CLOSED = Chip("Closed", "lock-fill", "quiet")
_READY = Chip("Open", "unlock-fill", "live")
_STARTING = Chip("Starting", "arrow-repeat", "start")
_FAILED = Chip("Failed", "exclamation-triangle-fill", "bad")


@dataclass(frozen=True)
class Step:
    """The progress of an endpoint, as a word and a sentence."""

    chip: Chip
    message: str
    moves: bool = False
    """Whether it will change by itself, so that the page polls."""
    log: str = ""


def step_of(endpoint: SshEndpoint) -> Step:
    """The progress of a session and its SSH server, in words."""
    session, opened = endpoint.session, endpoint.opened
    if session.state in OVER or session.state is State.ENDING:
        return Step(_OVER, "This session is over. Launch it again to connect to it.")
    if opened is None or not endpoint.is_open:
        return Step(_CLOSED, "Nobody can connect with SSH until you open it.")
    if session.state in (State.SUBMITTING, State.PENDING):
        reason = _reason(session)
        return Step(CHIPS["PENDING"], f"It opens with the session. {reason}".rstrip(), moves=True)
    if session.state is State.STARTING:
        return Step(_STARTING, "The container is starting.", moves=True)
    if opened.state is AppState.READY and endpoint.key:
        return Step(_READY, "")
    if opened.state in (AppState.FAILED, AppState.STOPPED):
        text = opened.message or "The SSH server has stopped."
        return Step(_FAILED, f"{text} Open it to try again.", log=opened.log)
    return Step(_STARTING, "The SSH server is starting.", moves=True)


def _reason(session: Session) -> str:
    """The reason why the session waits, as on its page."""
    status, now = services().cluster.slurm_status(), services().clock()
    holdings = services().sessions.holdings(person().name, [session])
    reason = shown_reason(session, status, now, holdings)
    return reason.text if reason else ""


@blueprint.get("/sessions/<session_id>/ssh")
def ssh(session_id: str) -> ResponseReturnValue:
    """The page."""
    return _page(services().ssh.endpoint(person(), session_id))


@blueprint.get("/sessions/<session_id>/ssh/now")
def ssh_now(session_id: str) -> ResponseReturnValue:
    """The part of the page that is polled while the endpoint opens."""
    endpoint = services().ssh.endpoint(person(), session_id)
    return render_template(
        "_ssh.html", endpoint=endpoint, step=step_of(endpoint), **config_context()
    )


@blueprint.post("/sessions/<session_id>/ssh")
def open_ssh(session_id: str) -> ResponseReturnValue:
    """Open the endpoint, on the preferred port if it is free."""
    preferred = request.form.get("preferred_port", "").strip()
    try:
        services().ssh.open(person(), session_id, AppOptions(port=_port(preferred)))
    except InvalidRequest as error:
        endpoint = services().ssh.endpoint(person(), session_id)
        return _page(endpoint, error.errors[0].message, preferred, error.status)
    tried = f"?tried={preferred}" if preferred else ""
    return redirect(f"/sessions/{session_id}/ssh{tried}", 303)


@blueprint.post("/sessions/<session_id>/ssh/close")
def close_ssh(session_id: str) -> ResponseReturnValue:
    """Close the endpoint and cut its connections."""
    services().ssh.close(person(), session_id)
    return redirect(f"/sessions/{session_id}/ssh", 303)


@blueprint.post("/sessions/<session_id>/ssh/key")
def ssh_key(session_id: str) -> ResponseReturnValue:
    """The user's private key as a file; a POST, since the key is generated if there is none."""
    services().ssh.endpoint(person(), session_id)
    response = Response(services().ssh.key(person()), content_type="application/octet-stream")
    response.headers["Content-Disposition"] = f'attachment; filename="{KEY_FILE}"'
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.post("/sessions/<session_id>/ssh/new-key")
def new_ssh_key(session_id: str) -> ResponseReturnValue:
    """Replace the user's private key."""
    services().ssh.endpoint(person(), session_id)
    services().ssh.new_key(person())
    return redirect(f"/sessions/{session_id}/ssh?renewed=yes", 303)


def _port(text: str) -> int | None:
    # No port has more than five digits, and parsing a very long number is slow.
    if text and not (text.isascii() and text.isdigit() and len(text) <= 5):
        raise InvalidRequest([FieldError("preferred_port", "write the number of a port")])
    return int(text) if text else None


def _page(
    endpoint: SshEndpoint, problem: str = "", preferred: str = "", status: int = 200
) -> Response:
    tried = request.args.get("tried", "")
    taken = tried if endpoint.port and tried.isdecimal() and tried != str(endpoint.port) else ""
    page = render_template(
        "ssh.html",
        person=person(),
        endpoint=endpoint,
        step=step_of(endpoint),
        ports=services().settings.web.ssh_ports if site_rules().preferred_ports else None,
        problem=problem,
        preferred=preferred,
        taken=taken[:5],
        renewed="renewed" in request.args,
        key_folder=f"{services().settings.sessions.directory}/{KEY_FOLDER}",
        **config_context(),
    )
    return make_response(page, status)
