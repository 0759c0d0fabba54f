"""Listening sockets as /proc shows them."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from portal.node.runner.apps import listening

HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode"
)


def line(local: str, state: str, inode: int = 7) -> str:
    """A line of /proc/PID/net/tcp."""
    zeros = "00000000:00000000 00:00000000 00000000"
    return f"   0: {local} 00000000:0000 {state} {zeros}  1000        0 {inode} 1 0 100 0 0 10 0"


def test_addresses_are_read_in_both_families(tmp_path: Path) -> None:
    (tmp_path / "9" / "net").mkdir(parents=True)
    lines = [HEAD, line("0100007F:1F90", "0A"), line("0100007F:1F91", "01")]
    (tmp_path / "9" / "net" / "tcp").write_text("\n".join(lines))
    assert listening.in_namespace_of(9, str(tmp_path)) == {("127.0.0.1", 8080)}
    sixes = ["0" * 24 + "01000000", "0" * 32, "0000000000000000FFFF00000101007F"]
    lines = [HEAD, *(line(f"{six}:1388", "0A") for six in sixes)]
    (tmp_path / "9" / "net" / "tcp6").write_text("\n".join(lines))
    expected = {("127.0.0.1", 8080), ("::1", 5000), ("::", 5000), ("127.0.1.1", 5000)}
    assert listening.in_namespace_of(9, str(tmp_path)) == expected


def test_a_process_that_has_ended_listens_nowhere(tmp_path: Path) -> None:
    assert listening.in_namespace_of(9, str(tmp_path)) == set()
    assert listening.of_processes([9], str(tmp_path)) == set()


def test_only_sockets_of_these_processes_count() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours:
        address = ours.getsockname()
        assert address in listening.in_namespace_of(os.getpid())
        assert address in listening.of_processes([os.getpid()])
        assert address not in listening.of_processes([os.getppid()])


@pytest.mark.parametrize(
    ("address", "reached"),
    [
        (("127.0.0.1", 8080), True),
        (("0.0.0.0", 8080), True),
        (("::", 8080), True),
        (("::1", 8080), True),
        (("127.0.1.1", 8080), False),
        (("127.0.0.1", 5000), False),
    ],
)
def test_what_a_connection_to_localhost_reaches(address: tuple[str, int], reached: bool) -> None:
    assert listening.reaches([address], 8080) is reached


def test_places_are_named_once() -> None:
    both = [("::1", 5000), ("127.0.0.1", 5000), ("127.0.1.1", 8080)]
    assert listening.describe(both, 8080) == "port 5000 and 127.0.1.1 port 8080"
    assert listening.describe([], 8080) == ""
