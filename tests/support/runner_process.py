"""A runner's process outside of any container."""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.runner_apps import DEMO, app_script
from tests.support.runner_portal import FakePortal, spec_text

needs_programs = pytest.mark.skipif(
    not (shutil.which("haproxy") and shutil.which("openssl")), reason="needs haproxy and openssl"
)
APP = {"name": DEMO, "script": app_script(""), "ready": "/", "timeout": 20}


class RunnerProcess:
    """A runner's process outside of any container."""

    def __init__(self, portal: FakePortal, directory: str, **changes: object) -> None:
        toolkit = Path(directory) / "toolkit"
        (toolkit / "bin").mkdir(parents=True)
        for program in ("haproxy", "openssl"):
            (toolkit / "bin" / program).symlink_to(str(shutil.which(program)))
        spec = spec_text(portal, apps=[DEMO], heartbeat_seconds=0.3, **changes)
        (Path(directory) / "spec").write_text(spec)
        self.portal = portal
        self.log = Path(directory) / "log"
        argv = [sys.executable, "-m", "portal.node.runner", "--job-id", "7", "--node", "n1"]
        argv += ["--directory", f"{directory}/run", "--toolkit", str(toolkit)]
        with open(f"{directory}/spec", "rb") as stdin, open(self.log, "wb") as output:
            self.process = subprocess.Popen(argv, stdin=stdin, stdout=output, stderr=output)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(5)

    def get(self, port: int, name: str, client: Path | None) -> str:
        """The first line of an app's response through the gateway."""
        context = ssl.create_default_context(cafile=str(self.portal.gateway.certificate))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if client is not None:
            context.load_cert_chain(client)
        with (
            socket.create_connection(("127.0.0.1", port), 5) as plain,
            context.wrap_socket(plain, server_hostname=name) as stream,
        ):
            stream.sendall(b"GET /apps HTTP/1.1\r\nHost: x\r\n\r\n")
            return stream.recv(4000).partition(b"\r\n")[0].decode()


def children_of(pid: int) -> list[int]:
    done = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in done.stdout.split()]
