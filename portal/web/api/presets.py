"""Presets over the REST API, and launching a session again."""

from __future__ import annotations

from typing import Any

from flask.typing import ResponseReturnValue

from portal.core.launch.presets import Preset
from portal.errors import FieldError, InvalidRequest
from portal.web.api import guarded
from portal.web.api.sessions import launched
from portal.web.body import read_json, read_nothing
from portal.web.context import person, services
from portal.web.idempotency import key_of_request

blueprint = guarded("presets")


@blueprint.get("/presets")
def list_presets() -> ResponseReturnValue:
    """One's own presets, by name."""
    return {"presets": [_shown(preset) for preset in services().presets.list(person())]}


def _shown(preset: Preset) -> dict[str, Any]:
    """A preset without the values of its variables: they are as secret as a session's."""
    launch = preset.body | ({"env": list(preset.body["env"])} if "env" in preset.body else {})
    return {"name": preset.name, "saved": preset.saved.isoformat(), "launch": launch}


@blueprint.put("/presets/<name>")
def save_preset(name: str) -> ResponseReturnValue:
    """Keep a launch under a name; one of the same name is replaced."""
    request = services().launcher.parse(read_json())
    try:
        preset, new = services().presets.save(person(), name, request)
    except InvalidRequest as error:  # a form calls the name preset, here it is a part of the path
        raise InvalidRequest([FieldError("name", e.message) for e in error.errors]) from None
    return _shown(preset), 201 if new else 200


@blueprint.delete("/presets/<name>")
def delete_preset(name: str) -> ResponseReturnValue:
    """Forget a preset."""
    read_nothing()
    services().presets.remove(person(), name)
    return "", 204


@blueprint.post("/presets/<name>/launch")
def launch_preset(name: str) -> ResponseReturnValue:
    """Launch a preset, as POST /sessions would."""
    read_nothing()
    return _launch(services().presets.get(person(), name).body)


@blueprint.post("/sessions/<session_id>/relaunch")
def relaunch(session_id: str) -> ResponseReturnValue:
    """Launch a session like one of one's own."""
    read_nothing()
    return _launch(services().sessions.clone_body(person(), session_id))


def _launch(body: dict[str, Any]) -> ResponseReturnValue:
    wanted = services().launcher.parse(body)
    return launched(services().launcher.launch(person(), wanted, key_of_request()))
