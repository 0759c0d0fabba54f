"""SSH into sessions over the REST API, and the caller's private key."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from portal.core.apps.ssh import KEY_FILE
from portal.web.api import guarded
from portal.web.api.models.base import REQUEST, NoContent
from portal.web.api.models.ssh import PublicKeyListOut, PublicKeyOut, SshDoorOut, SshKeyOut
from portal.web.api.operation import Reply, operation
from portal.web.context import person, services
from portal.web.http.body import read_model, read_nothing

blueprint = guarded("ssh")


class KeyRequest(BaseModel):
    """Options for fetching the key."""

    model_config = REQUEST

    new: bool = False
    """Whether to replace the key first; the old one then no longer works in any session."""


class AddKeyRequest(BaseModel):
    """A public key to add."""

    model_config = REQUEST

    public_key: Annotated[str, Field(max_length=5000)]
    """One line in OpenSSH's format, without options."""


@blueprint.get("/me/ssh-keys")
@operation("List your public SSH keys", PublicKeyListOut)
def list_ssh_keys() -> PublicKeyListOut:
    """The keys that the caller added; id_container's is not among them."""
    keys = services().ssh.public_keys(person())
    return PublicKeyListOut(keys=[PublicKeyOut.of(key) for key in keys])


@blueprint.post("/me/ssh-keys")
@operation("Add a public SSH key", PublicKeyOut, status=201, body=AddKeyRequest)
def add_ssh_key() -> PublicKeyOut:
    """Let a key into all of the caller's sessions. Idempotent."""
    added = services().ssh.add_public_key(person(), read_model(AddKeyRequest).public_key)
    return PublicKeyOut.of(added)


@blueprint.delete("/me/ssh-keys/<key_id>")
@operation("Remove a public SSH key", NoContent)
def remove_ssh_key(key_id: str) -> NoContent:
    """Refuse a key from now on, and cut all SSH connections to the caller's sessions."""
    read_nothing()
    services().ssh.remove_public_key(person(), key_id)
    return NoContent()


@blueprint.get("/sessions/<session_id>/ssh")
@operation("How to connect to a session by SSH", SshDoorOut)
def get_ssh_connection(session_id: str) -> SshDoorOut:
    """Address, user and host key of the SSH server; SSH is opened like any app."""
    return SshDoorOut.of(services().ssh.endpoint(person(), session_id))


# Not a GET: a read-only token must not become shell access.
@blueprint.post("/me/id_container")
@operation("Your private SSH key", SshKeyOut, body=KeyRequest, body_required=False)
def fetch_ssh_key() -> Reply[SshKeyOut]:
    """The caller's private key for all of their sessions; created if there is none yet."""
    if read_model(KeyRequest, optional=True).new:
        services().ssh.new_key(person())
    key = SshKeyOut(name=KEY_FILE, private_key=services().ssh.key(person()))
    return Reply(key, headers={"Cache-Control": "no-store"})
