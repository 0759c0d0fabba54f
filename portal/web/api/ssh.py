"""SSH into sessions over the REST API, and one's own key for it."""

from __future__ import annotations

from flask.typing import ResponseReturnValue
from pydantic import BaseModel

from portal.core.apps.ssh import KEY_FILE
from portal.core.validation import STRICT
from portal.web.api import guarded
from portal.web.body import read_model
from portal.web.context import person, services

blueprint = guarded("ssh")


class KeyRequest(BaseModel):
    """Which key."""

    model_config = STRICT

    new: bool = False
    """Whether to make a new one in place of the old one, which then fits no session any more."""


@blueprint.get("/sessions/<session_id>/ssh")
def show(session_id: str) -> ResponseReturnValue:
    """Where to connect to, as whom, and how the server proves itself; opened like any app."""
    door = services().ssh.endpoint(person(), session_id)
    return {
        "state": door.opened.state if door.opened and door.is_open else "closed",
        "host": door.host,
        "port": door.port,
        "user": door.session.owner,
        "host_key": door.key.line if door.key else None,
        "fingerprint": door.key.fingerprint if door.key else None,
        "host_key_alias": door.alias,
    }


# Not a GET: a token that may only read must not turn into a shell.
@blueprint.post("/me/id_container")
def fetch_key() -> ResponseReturnValue:
    """One's own private key for all of one's sessions; made if there is none yet."""
    if read_model(KeyRequest, optional=True).new:
        services().ssh.new_key(person())
    answer = {"name": KEY_FILE, "private_key": services().ssh.key(person())}
    return answer, 200, {"Cache-Control": "no-store"}
