"""SSH access to sessions with stock OpenSSH."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.client import Api, Json
from tests.support.cluster import wait_for

Done = subprocess.CompletedProcess[bytes]


@dataclass
class SshClient:
    """A user's computer: stock OpenSSH, a key, and the host key from the portal."""

    folder: Path
    endpoint: Json

    def options(self, **more: object) -> list[str]:
        """Options common to all of OpenSSH's programs."""
        settings = {
            "IdentityFile": self.folder / "id_container",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.folder / "known_hosts",
            "StrictHostKeyChecking": "yes",
            "HostKeyAlias": self.endpoint["host_key_alias"],
            "BatchMode": "yes",
            "Port": self.endpoint["port"],
            "User": self.endpoint["user"],
            "LogLevel": "ERROR",
        } | more
        return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def argv(self, *command: str, **more: object) -> list[str]:
        """The argv of an ssh command."""
        return ["ssh", "-F", "none", *self.options(**more), str(self.endpoint["host"]), *command]

    def ssh(self, *command: str, stdin: bytes = b"", **more: object) -> Done:
        """Run a command in the session."""
        return run_program(self.argv(*command, **more), stdin)

    def copy(self, *words: str) -> None:
        """Run scp."""
        done = run_program(["scp", "-F", "none", *self.options(), *words])
        assert done.returncode == 0, done.stderr

    @property
    def there(self) -> str:
        """The session's home, as scp and rsync write it."""
        return f"{self.endpoint['host']}:"


def run_program(argv: list[str], stdin: bytes = b"") -> Done:
    """Run a program on this computer."""
    return subprocess.run(argv, input=stdin, capture_output=True, timeout=120, check=False)


def open_ssh(api: Api, session: str) -> Json:
    """Open SSH access and wait until the server is ready."""
    api.ask("POST", f"/sessions/{session}/apps/ssh")

    def ready() -> Json | None:
        endpoint = api.ask("GET", f"/sessions/{session}/ssh")
        assert endpoint["state"] not in ("failed", "stopped"), endpoint
        return endpoint if endpoint["state"] == "ready" and endpoint["host_key"] else None

    return wait_for("the SSH server", ready, 30)


def client_of(api: Api, endpoint: Json, folder: Path) -> SshClient:
    """A computer with the user's own key, which knows the host key."""
    folder.mkdir(exist_ok=True)
    key = api.ask("POST", "/me/id_container")["private_key"]
    (folder / "id_container").touch(0o600)
    (folder / "id_container").write_text(key)
    (folder / "known_hosts").write_text(f"{endpoint['host_key_alias']} {endpoint['host_key']}\n")
    return SshClient(folder, endpoint)
