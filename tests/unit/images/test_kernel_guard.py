"""The check whether a kernel listens on TCP, which runs in the kernel's own Python."""

from __future__ import annotations

import os
import runpy
import socket
import subprocess
import sys
from pathlib import Path

KERNEL = Path(__file__).parents[3] / "images" / "toolkit" / "jupyter" / "kernel.py"


def test_only_listening_tcp_ports_count(tmp_path: Path) -> None:
    tcp_ports = runpy.run_path(str(KERNEL), run_name="kernel")["tcp_ports"]
    before = set(tcp_ports())
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as other,
        socket.create_connection(listener.getsockname()) as stream,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        unix.bind(str(tmp_path / "socket"))
        unix.listen()
        stream.sendall(b"connected")
        ports = {listener.getsockname()[1], other.getsockname()[1]}
        assert set(tcp_ports()) - before == ports
        # Checking closes nothing.
        with listener.accept()[0] as accepted:
            assert accepted.recv(9) == b"connected"
    assert set(tcp_ports()) == before


def test_it_reports_why_there_is_no_kernel(tmp_path: Path) -> None:
    """Without ipykernel it fails as `-m ipykernel_launcher` does, and never as something else."""
    argv = [sys.executable, "-S", str(KERNEL), "-f", "nowhere"]
    done = subprocess.run(
        argv, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "No module named 'ipykernel'" in done.stderr
