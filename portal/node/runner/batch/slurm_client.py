"""srun, squeue and so on inside the container of a batch job or step.

The real command runs on the node, outside of the container (node/batch/execute/steps.py): it gets
the arguments, the environment, the folder and the standard streams of this one, and its signals.
"""

from __future__ import annotations

import array
import json
import os
import resource
import signal
import socket
import struct
import sys
import threading

from .coercion import take_back
from .streams import reserve_streams
from .supervisor import SLURM, connect

FAILED = 1
LIMITS = 16
"""Linux's kinds of resource limits; srun hands the caller's to its step."""
PASSED = signal.valid_signals() - {
    signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGWINCH
}  # fmt: skip


def main() -> int:
    """Run the command of this program's name; returns its exit code."""
    reserve_streams()
    take_back()
    name = os.path.basename(sys.argv[0])
    try:
        call = {
            "words": [name, *sys.argv[1:]],
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "umask": _umask(),
            "limits": list(map(resource.getrlimit, range(LIMITS))),
        }
        text = json.dumps(call).encode("utf-8", "surrogateescape")
        with connect(os.environ.get(SLURM) or _of_ancestors()) as connection:
            return _call(connection, text)
    except OSError as error:
        problem = f"{name}: error: Slurm cannot be reached from this container: {error}"
        print(problem, file=sys.stderr)
        return FAILED


def _of_ancestors() -> str:
    """Find the server's name in ancestors' environments, if this one lacks it (`env -i`)."""
    process, mark = os.getppid(), f"{SLURM}=".encode()
    while process > 1:
        with open(f"/proc/{process}/environ", "rb") as stream:
            for pair in stream.read().split(b"\0"):
                if pair.startswith(mark):
                    return os.fsdecode(pair[len(mark) :])
        with open(f"/proc/{process}/stat", "rb") as stream:
            process = int(stream.read().rpartition(b")")[2].split()[1])
    raise FileNotFoundError("this process does not belong to a job's script or step")


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _call(connection: socket.socket, text: bytes) -> int:
    streams = array.array("i", (0, 1, 2)).tobytes()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)]
    # Signals are blocked until the whole call is sent: the command gets them once it has begun.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED)
    connection.sendmsg([struct.pack("=I", len(text))], rights)
    connection.sendall(text)
    threading.Thread(target=_pass_signals, args=(connection,), daemon=True).start()
    answer = b""
    while len(answer) < 4:
        piece = connection.recv(4 - len(answer))
        if not piece:
            return FAILED
        answer += piece
    code: int = struct.unpack("=i", answer)[0]
    return code


def _pass_signals(connection: socket.socket) -> None:
    """Send the command each signal that this process gets, one after the other."""
    try:
        while True:
            connection.sendall(bytes([signal.sigwait(PASSED)]))
    except OSError:
        return  # it has ended


if __name__ == "__main__":
    sys.exit(main())
