"""srun, squeue and so on inside the container of a batch job.

The real command runs on the node, outside of the container (portal/batch/steps.py): it gets the
arguments, the environment, the folder and the three standard streams of this one, and its signals.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import struct
import sys

FAILED = 1
IGNORED = {signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGWINCH}


def main() -> int:
    """Run the command of this program's name; returns its exit code."""
    name = os.path.basename(sys.argv[0])
    place = os.environ.get("SLIPWAY_SLURM", "")
    try:
        call = {
            "words": [name, *sys.argv[1:]],
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "umask": _umask(),
        }
        text = json.dumps(call).encode("utf-8", "surrogateescape")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(place)
            return _call(connection, text)
    except OSError as error:
        problem = f"{name}: error: Slurm cannot be reached from this container: {error}"
        print(problem, file=sys.stderr)
        return FAILED


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _call(connection: socket.socket, text: bytes) -> int:
    streams = array.array("i", (0, 1, 2)).tobytes()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)]
    passed = signal.valid_signals() - IGNORED
    # Until the whole call is sent, they wait: the command may get one as soon as it has begun.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, passed)
    for number in passed:
        signal.signal(number, lambda got, _frame: connection.sendall(bytes([got])))
    connection.sendmsg([struct.pack("=I", len(text))], rights)
    connection.sendall(text)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    answer = b""
    while len(answer) < 4:
        piece = connection.recv(4 - len(answer))
        if not piece:
            return FAILED
        answer += piece
    code: int = struct.unpack("=i", answer)[0]
    return code


if __name__ == "__main__":
    sys.exit(main())
