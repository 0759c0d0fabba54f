"""One server for each user, host and portal: the next one ends the earlier, unless it must not."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.core.files.server import StartOrder
from portal.node.file_server.daemon import StartError, listen

START = "from portal.node.file_server.daemon import main; main()"
IDS = ("0123456789abcdef", "fedcba9876543210", "00000000ffffffff")


class Host:
    """A host on which servers are started as the portal does it."""

    def __init__(self, folder: Path) -> None:
        self._home, self._ca = folder / "home", folder / "ca"
        self._home.mkdir()
        prepare_authorities(self._ca, "portal")

    def start(self, id: str, unless: str = "") -> dict[str, Any]:
        """What the command prints."""
        authority = CertificateAuthority(self._ca)
        order = StartOrder(
            id, authority.issue_gateway(id), authority.client_ca(), {"home": ""}, (0, 0), 1.0, 48.0
        )
        done = subprocess.run(
            [sys.executable, "-c", START],
            input=json.dumps(asdict(replace(order, unless=unless))).encode(),
            env=os.environ | {"HOME": str(self._home), "SSH_CONNECTION": "::1 1 127.0.0.1 22"},
            capture_output=True,
            timeout=30,
            check=True,
        )
        answer: dict[str, Any] = json.loads(done.stdout.rpartition(b"\0")[2])
        return answer


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


def process_at(port: int) -> int:
    """The process that listens at a port of IPv6."""
    line = next(
        line.split()
        for line in Path("/proc/net/tcp6").read_text().splitlines()
        if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
    )
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for file in (folder / "fd").iterdir():
                if os.readlink(file) == f"socket:[{line[9]}]":
                    return int(folder.name)
    raise AssertionError(f"nobody has {port}")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    answer = made.start(IDS[2])  # ends the one before
    os.kill(process_at(answer["port"]), signal.SIGKILL)


def test_the_next_server_ends_the_earlier_one(host: Host) -> None:
    first, second = host.start(IDS[0]), host.start(IDS[1], unless=IDS[2])
    assert not listens(first["port"])
    assert listens(second["port"])


def test_a_server_that_still_runs_is_kept_if_the_order_says_so(host: Host) -> None:
    first = host.start(IDS[0])
    assert host.start(IDS[1], unless=IDS[0]) == {"running": IDS[0]}
    assert listens(first["port"])
    os.kill(process_at(first["port"]), signal.SIGKILL)
    second = host.start(IDS[1], unless=IDS[0])
    assert listens(second["port"])


def test_a_port_of_somebody_else_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"hold all ports from {port} to {port}"):
            listen((port, port))
        with listen((port, port + 20)) as listener:
            assert port < listener.getsockname()[1] <= port + 20
