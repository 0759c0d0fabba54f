"""Presets and relaunching over the REST API."""

from __future__ import annotations

from typing import Any

from portal.core.launch.presets import Preset
from portal.core.launch.request import LaunchRequest
from portal.errors import FieldError, InvalidRequest
from portal.web.api import guarded
from portal.web.api.models.base import NoContent
from portal.web.api.models.presets import PresetListOut, PresetOut, PresetRequest
from portal.web.api.models.sessions import SessionListOut
from portal.web.api.operation import IDEMPOTENCY_KEY, Reply, operation
from portal.web.api.sessions import launch_response
from portal.web.context import person, services
from portal.web.http.body import read_json, read_model, read_nothing
from portal.web.http.idempotency import key_of_request

blueprint = guarded("presets", for_services=True)


@blueprint.get("/presets")
@operation("List presets", PresetListOut)
def list_presets() -> PresetListOut:
    """The caller's presets, by name."""
    presets = services().presets.list(person())
    return PresetListOut(presets=[PresetOut.of(preset) for preset in presets])


@blueprint.put("/presets/<name>")
@operation("Create or replace a preset", PresetOut, other_statuses=(201,), body=LaunchRequest)
def save_preset(name: str) -> Reply[PresetOut]:
    """Save a launch request under a name; a preset of the same name is replaced."""
    preset, new = _save(name, services().launch_checks.parse(read_json()))
    return Reply(PresetOut.of(preset), status=201 if new else 200)


def _save(name: str, request: LaunchRequest, replace: bool = True) -> tuple[Preset, bool]:
    try:
        return services().presets.save(person(), name, request, replace)
    except InvalidRequest as error:  # forms call the name "preset"
        raise InvalidRequest([FieldError("name", e.message) for e in error.errors]) from None


@blueprint.post("/sessions/<session_id>/preset")
@operation("Save a session as a preset", PresetOut, status=201, body=PresetRequest)
def save_session_as_preset(session_id: str) -> PresetOut:
    """Save the launch request of one of the caller's sessions; 409 if the name is taken."""
    body = services().sessions.clone_body(person(), session_id)
    name = read_model(PresetRequest).name
    body.pop("name", None)  # the next session gets its own name
    return PresetOut.of(_save(name, services().launch_checks.parse(body), replace=False)[0])


@blueprint.delete("/presets/<name>")
@operation("Delete a preset", NoContent)
def delete_preset(name: str) -> NoContent:
    """Delete a preset."""
    read_nothing()
    services().presets.remove(person(), name)
    return NoContent()


@blueprint.post("/presets/<name>/launch")
@operation("Launch a preset", SessionListOut, status=201, header=IDEMPOTENCY_KEY)
def launch_preset(name: str) -> SessionListOut:
    """Launch a preset, as POST /sessions would; without a name, it is named after the preset."""
    read_nothing()
    return _launch(services().presets.get(person(), name).to_launch, name)


@blueprint.post("/sessions/<session_id>/relaunch")
@operation("Launch a copy of a session", SessionListOut, status=201, header=IDEMPOTENCY_KEY)
def relaunch_session(session_id: str) -> SessionListOut:
    """Launch a copy of one of the caller's sessions."""
    read_nothing()
    return _launch(services().sessions.clone_body(person(), session_id))


def _launch(body: dict[str, Any], preset: str = "") -> SessionListOut:
    plan = services().launch_checks.prepare(person(), body, key_of_request())
    return launch_response(services().launcher.launch(plan, preset))
