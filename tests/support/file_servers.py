"""Users' file servers for unit tests: real ones, in threads of the test's process.

Only SSH is missing: nobody starts them as another user, and homes are temporary folders.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.files.host import SshFileServers
from portal.core.files.server import FileReply, FileRequest, FileServer, NoReply, StartOrder
from portal.errors import Unavailable
from portal.node.file_server.daemon import listen
from portal.node.file_server.order import Order
from portal.node.file_server.server import FileServer as Server
from tests.support.transports import NoTransport


@cache
def authorities() -> Path:
    """Certificate authorities, made once: keys take time."""
    folder = Path(tempfile.mkdtemp(prefix="ca-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    prepare_authorities(folder, "portal")
    return folder


@cache
def _client() -> SshFileServers:
    return SshFileServers(NoTransport(), "slipway", authorities())


@dataclass
class FakeFileServers:
    """FileServerHost over servers of this process; homes are made when they are needed."""

    folder: Path
    away: bool = False
    refusal: Unavailable | None = None
    """Raised instead of starting a server."""
    starts: list[str] = field(default_factory=list)
    """Users whose server was started, in order."""
    running: dict[str, Server] = field(default_factory=dict)
    cleaned: list[str] = field(default_factory=list)
    unfinished: int = 0
    """Uploads of each user that are not complete."""

    def home(self, user: str) -> Path:
        """The user's home directory, at first with an empty storage area."""
        path = self.folder / "homes" / user
        if not path.exists():
            (path / "storage").mkdir(parents=True)
        return path

    def start(self, owner: str, order: StartOrder) -> tuple[str, int]:
        """Start a server."""
        if self.refusal is not None:
            raise self.refusal
        if self.away:
            raise Unavailable("The login node does not answer.")
        self.kill(owner)
        authority, home = CertificateAuthority(authorities()), self.home(owner)
        server = Server(
            Order(
                id=order.id,
                certificate=authority.issue_gateway(order.id),
                client_ca=authority.client_ca(),
                roots={name: str(home / path) for name, path in order.roots.items()},
                ports=order.ports,
                idle_minutes=order.idle_minutes,
                upload_hours=order.upload_hours,
                shared=f"{self.folder}/homes/{{user}}/{order.shared}",
                quota=order.quota,
                fetch=order.fetch,
            ),
            listen((0, 0)),
        )
        _STARTED.append(server)
        self.starts.append(owner)
        self.running[owner] = server
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return "127.0.0.1", server.socket.getsockname()[1]

    def clean(self, owner: str, order: StartOrder) -> int:
        """Clean up; reports the unfinished uploads that the test has set."""
        if self.away:
            raise Unavailable("The login node does not answer.")
        self.cleaned.append(owner)
        return self.unfinished

    def kill(self, owner: str) -> None:
        """End a user's server, as if its process were killed."""
        server = self.running.pop(owner, None)
        if server is not None:
            _end(server)

    def ask(self, server: FileServer, request: FileRequest) -> FileReply | NoReply:
        """Ask it, by the portal's own client."""
        return _client().ask(server, request)


_STARTED: list[Server] = []


def end_file_servers() -> None:
    """End the servers that a test has started."""
    while _STARTED:
        _end(_STARTED.pop())


def _end(server: Server) -> None:
    server.shutdown()
    server.server_close()
