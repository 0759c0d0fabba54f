"""SSH access to a session: endpoint, host key, and the commands for connecting."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import shlex
from dataclasses import dataclass

from portal.core.apps.access import OpenApp
from portal.core.apps.catalog import AppSpec
from portal.core.apps.editors import editor_links
from portal.core.launch.mounts import mount_name
from portal.core.session.session import Home, Session

KEY_FILE = "id_container"
"""Name of the private key, as a download and in the user's home on the cluster."""
KEY_FOLDER = "key"
"""Folder of the key on the cluster, inside the portal's folder."""
_PRIVATE = re.compile(
    r"-----BEGIN OPENSSH PRIVATE KEY-----\n[A-Za-z0-9+/=\n]+-----END OPENSSH PRIVATE KEY-----\n"
)


def find_private_key(text: str) -> str | None:
    """The private key (OpenSSH format) in a command's output; None if there is none."""
    match = _PRIVATE.search(text.replace("\r\n", "\n"))
    return match[0] if match else None


@dataclass(frozen=True)
class HostKey:
    """The public key by which clients verify a session's SSH server."""

    line: str
    """Type and base64 key, as in known_hosts."""
    fingerprint: str
    """As printed by ssh: SHA256:…"""


def read_host_key(details: str) -> HostKey | None:
    """The host key that the app reported (OpenApp.details); None if there is none."""
    words = details.split()
    if len(words) < 2 or words[0] != "ssh-ed25519":
        return None
    try:
        raw = base64.b64decode(words[1], validate=True)
    except binascii.Error:
        return None
    digest = base64.b64encode(hashlib.sha256(raw).digest()).decode().rstrip("=")
    return HostKey(f"{words[0]} {words[1]}", f"SHA256:{digest}")


def was_renewed(details: str) -> bool:
    """Whether the app reports that the owner's key was regenerated and not yet downloaded."""
    return "renewed" in details.splitlines()[1:]


PREFIX = "slipway-"
"""Prefix of session names in SSH clients."""


def config_for_all(owner: str, host: str, lookup: str, vouches: bool) -> str:
    """The block for ~/.ssh/config that serves all of a user's sessions, future ones as well.

    `lookup` is the address below which the portal answers the port and the host key of a session.
    `vouches`: whether these answers are authenticated, so that ssh need not ask about host keys.
    """
    find = f"port=$(curl -sS {lookup}/%n/port)"
    check = 'case "$port" in ""|*[!0-9]*) echo "$port" >&2; exit 1;; esac'
    # Only bash: not every system has nc. Whichever side closes first, no process remains.
    relay = (
        f"exec 3<>/dev/tcp/{host}/$port || exit 1; exec 4<&0 2>/dev/null; "
        "cat <&3 & r=$!; (cat <&4 >&3; kill $r) & wait $r; kill $!"
    )
    lines = [
        f"Host {PREFIX}*",
        f"    User {owner}",
        f"    IdentityFile ~/.ssh/{KEY_FILE}",
        f"    ProxyCommand bash -c '{find}; {check}; {relay}'",
    ]
    if vouches:
        lines += [
            f"    KnownHostsCommand /usr/bin/curl -sS {lookup}/%n/host-key",
            "    UserKnownHostsFile /dev/null",
        ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class SshEndpoint:
    """A session's SSH endpoint: the app that serves it, and its state."""

    session: Session
    app: AppSpec
    opened: OpenApp | None
    host: str

    @property
    def is_open(self) -> bool:
        """Whether the owner has opened it and not closed it since."""
        return self.opened is not None and not self.opened.closed

    @property
    def port(self) -> int | None:
        """The port; None while it is closed."""
        return int(self.opened.label) if self.opened is not None and self.is_open else None

    @property
    def key(self) -> HostKey | None:
        """The host key; None until the server has reported it."""
        return read_host_key(self.opened.details) if self.opened else None

    @property
    def renewed(self) -> bool:
        """Whether the key was regenerated, and not downloaded before the server started."""
        return self.is_open and self.opened is not None and was_renewed(self.opened.details)

    @property
    def name(self) -> str:
        """A name for the session in SSH clients."""
        name = self.session.name
        return f"{PREFIX}{name if name.isascii() else self.session.id[:12]}"

    @property
    def alias(self) -> str:
        """HostKeyAlias, under which clients store the host key; never reused, unlike a port."""
        return f"slipway-{self.session.id[:16]}"

    @property
    def known_host(self) -> str:
        """The known_hosts line; "" before the host key is known."""
        return f"{self.alias} {self.key.line}" if self.key else ""

    @property
    def config(self) -> str:
        """The block for ~/.ssh/config that serves this session only, on any system."""
        lines = {
            "HostName": self.host,
            "Port": self.port,
            "User": self.session.owner,
            "IdentityFile": f"~/.ssh/{KEY_FILE}",
            "IdentitiesOnly": "yes",
            "HostKeyAlias": self.alias,
        }
        return "\n".join([f"Host {self.name}", *(f"    {k} {v}" for k, v in lines.items())]) + "\n"

    @property
    def editors(self) -> dict[str, str]:
        """Addresses for editors on the user's computer, by their titles."""
        home = "" if self.session.home is Home.PERSISTENT else f"/home/{self.session.owner}"
        folder = f"{home}/{self.folder}".rstrip("/") if home else ""
        return editor_links(self.name, self.session.owner, folder)

    @property
    def commands(self) -> dict[str, str]:
        """Commands for a shell and for copying files that need no configuration."""
        key, alias = f"-i ~/.ssh/{KEY_FILE}", f"-o HostKeyAlias={self.alias}"
        address = f"{self.session.owner}@{self.host}"
        ssh = f"ssh -p {self.port} {key} {alias}"
        copied, synced = (
            shlex.quote(f"{address}:{folder}") for folder in (self.folder, self.folder or "data/")
        )
        return {
            "ssh": f"{ssh} {address}",
            "sftp": f"sftp -P {self.port} {key} {alias} {address}",
            "scp": f"scp -P {self.port} {key} {alias} results.csv {copied}",
            "rsync": f'rsync -av -e "{ssh}" data/ {synced}',
            "windows": f"ssh -p {self.port} -i $HOME\\.ssh\\{KEY_FILE} {alias} {address}",
        }

    @property
    def folder(self) -> str:
        """The folder whose contents persist: "climate-2026/"; "" if none, or if it is the home."""
        if self.session.home is Home.PERSISTENT:
            return ""
        mounts = self.session.mounts
        writable = [mount_name(mount, mounts) for mount in mounts if not mount.read_only]
        return f"{writable[0]}/" if writable else ""
