"""SSH into sessions over the REST API, and the caller's private key."""

from __future__ import annotations

from pydantic import BaseModel

from portal.core.apps.ssh import KEY_FILE
from portal.web.api import guarded
from portal.web.api.models.base import REQUEST
from portal.web.api.models.ssh import SshDoorOut, SshKeyOut
from portal.web.api.operation import Reply, operation
from portal.web.context import person, services
from portal.web.http.body import read_model

blueprint = guarded("ssh")


class KeyRequest(BaseModel):
    """Options for fetching the key."""

    model_config = REQUEST

    new: bool = False
    """Whether to replace the key first; the old one then no longer works in any session."""


@blueprint.get("/sessions/<session_id>/ssh")
@operation("How to connect to a session by SSH", SshDoorOut)
def show(session_id: str) -> SshDoorOut:
    """Address, user and host key of the SSH server; SSH is opened like any app."""
    return SshDoorOut.of(services().ssh.endpoint(person(), session_id))


# Not a GET: a read-only token must not become shell access.
@blueprint.post("/me/id_container")
@operation("Your private SSH key", SshKeyOut, body=KeyRequest, body_required=False)
def fetch_key() -> Reply[SshKeyOut]:
    """The caller's private key for all of their sessions; created if there is none yet."""
    if read_model(KeyRequest, optional=True).new:
        services().ssh.new_key(person())
    key = SshKeyOut(name=KEY_FILE, private_key=services().ssh.key(person()))
    return Reply(key, headers={"Cache-Control": "no-store"})
