"""Response models for SSH into sessions."""

from __future__ import annotations

from typing import Literal

from portal.core.apps.access import AppState
from portal.core.apps.ssh import SshEndpoint
from portal.core.apps.ssh_keys import PublicKey
from portal.web.api.models.base import ResponseModel


class SshDoorOut(ResponseModel):
    """Address, user and host key of a session's SSH server."""

    state: AppState | Literal["closed"]
    host: str
    port: int | None
    user: str
    host_key: str | None
    """Type and key, as in known_hosts."""
    fingerprint: str | None
    host_key_alias: str
    """The value for ssh -o HostKeyAlias=."""

    @classmethod
    def of(cls, endpoint: SshEndpoint) -> SshDoorOut:
        """Build it."""
        key = endpoint.key
        return cls(
            state=endpoint.opened.state if endpoint.opened and endpoint.is_open else "closed",
            host=endpoint.host,
            port=endpoint.port,
            user=endpoint.session.owner,
            host_key=key.line if key else None,
            fingerprint=key.fingerprint if key else None,
            host_key_alias=endpoint.alias,
        )


class SshKeyOut(ResponseModel):
    """A private SSH key."""

    name: str
    """The name of its file."""
    private_key: str


class PublicKeyOut(ResponseModel):
    """A public SSH key that a user added."""

    id: str
    """SHA-256 of the key, hexadecimal."""
    type: str
    comment: str
    fingerprint: str

    @classmethod
    def of(cls, key: PublicKey) -> PublicKeyOut:
        """Build it."""
        return cls(id=key.id, type=key.kind, comment=key.comment, fingerprint=key.fingerprint)


class PublicKeyListOut(ResponseModel):
    """The public SSH keys that the caller added."""

    keys: list[PublicKeyOut]
