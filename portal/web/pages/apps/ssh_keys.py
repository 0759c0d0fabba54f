"""The user's SSH keys, and the look-ups of their sessions for ~/.ssh/config."""

from __future__ import annotations

from flask import Response, current_app, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue
from itsdangerous import BadSignature, URLSafeSerializer

from portal.core.apps.ssh import KEY_FILE, KEY_FOLDER, PREFIX, SshEndpoint, config_for_all
from portal.errors import HomeUnusable, InvalidRequest, NotFound, Unavailable
from portal.web.context import person, services
from portal.web.pages.blueprint import blueprint

_TEXT = {"Content-Type": "text/plain; charset=utf-8"}
_MESSAGES = {
    "added": "The key was added. All of your sessions accept it.",
    "removed": "The key was removed, and all SSH connections were cut.",
    "renewed": "You have a new key. The old one no longer works, and all SSH connections were "
    "cut: download the new one.",
}


def ssh_config() -> str:
    """The user's block for ~/.ssh/config."""
    web = services().settings.web
    lookup = f"{web.public_url.rstrip('/')}/ssh/{_signer().dumps(person().name)}"
    return config_for_all(person().name, web.ssh_host, lookup, web.secure or web.only_here)


def config_context() -> dict[str, object]:
    """The block and whether it covers host keys, for templates."""
    config = ssh_config()
    return {"config": config, "vouches": "KnownHostsCommand" in config}


def _signer() -> URLSafeSerializer:
    # Unguessable, and valid only for look-ups of ports and host keys.
    return URLSafeSerializer(str(current_app.secret_key), salt="slipway-ssh-addresses")


@blueprint.get("/account/ssh")
def ssh_keys() -> ResponseReturnValue:
    """The page."""
    return _page()


def _page(problem: str = "", entered: str = "", status: int = 200) -> Response:
    keys, trouble = [], ""
    try:
        keys = services().ssh.public_keys(person())
    except (HomeUnusable, Unavailable) as error:
        trouble = error.text
    page = render_template(
        "ssh_keys.html",
        person=person(),
        keys=keys,
        trouble=trouble,
        problem=problem,
        entered=entered,
        message=_MESSAGES.get(request.args.get("done", ""), ""),
        **config_context(),
        key_folder=f"{services().settings.sessions.directory}/{KEY_FOLDER}",
    )
    return make_response(page, status)


@blueprint.post("/account/ssh/keys")
def add_ssh_key() -> ResponseReturnValue:
    """Add a public key."""
    entered = request.form.get("public_key", "")
    try:
        services().ssh.add_public_key(person(), entered)
    except InvalidRequest as error:
        return _page(error.errors[0].message, entered[:5000], error.status)
    return redirect("/account/ssh?done=added", 303)


@blueprint.post("/account/ssh/keys/<key_id>/remove")
def remove_ssh_key(key_id: str) -> ResponseReturnValue:
    """Remove a public key, and cut the connections."""
    services().ssh.remove_public_key(person(), key_id)
    return redirect("/account/ssh?done=removed", 303)


@blueprint.post("/account/ssh/key")
def own_ssh_key() -> ResponseReturnValue:
    """The user's private key as a file; a POST, since the key is generated if there is none."""
    response = Response(services().ssh.key(person()), content_type="application/octet-stream")
    response.headers["Content-Disposition"] = f'attachment; filename="{KEY_FILE}"'
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.post("/account/ssh/new-key")
def renew_ssh_key() -> ResponseReturnValue:
    """Replace the user's private key, and cut the connections."""
    services().ssh.new_key(person())
    return redirect("/account/ssh?done=renewed", 303)


@blueprint.get("/ssh/<signed>/<name>/port")
def ssh_port(signed: str, name: str) -> ResponseReturnValue:
    """The SSH port of a session, for ~/.ssh/config; or one line with advice."""
    endpoint = _endpoint(signed, name)
    address = f"{services().settings.web.public_url.rstrip('/')}/sessions"
    if endpoint is None:
        text = f"{name}: you have no running session of this name. See {address}"
    elif endpoint.port is None or not endpoint.key:
        text = f"{name}: SSH is not open. Open it at {address}/{endpoint.session.id}/ssh"
    else:
        return f"{endpoint.port}\n", 200, _TEXT
    return f"{text}\n", 404, _TEXT


@blueprint.get("/ssh/<signed>/<name>/host-key")
def ssh_host_key(signed: str, name: str) -> ResponseReturnValue:
    """The line of known_hosts for a session."""
    endpoint = _endpoint(signed, name)
    if endpoint is None or not endpoint.is_open or not endpoint.key:
        return "", 200, _TEXT
    return f"{name} {endpoint.key.line}\n", 200, _TEXT


def _endpoint(signed: str, name: str) -> SshEndpoint | None:
    try:
        owner = str(_signer().loads(signed))
    except BadSignature:
        raise NotFound("There is nothing here.") from None
    if not name.startswith(PREFIX) or len(name) > 100:
        return None
    try:
        return services().ssh.by_name(owner, name.removeprefix(PREFIX))
    except NotFound:
        return None
