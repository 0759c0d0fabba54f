"""Slurm's commands for programs in the container: they run outside of it, on the node.

An image knows nothing of Slurm. Its programs find small clients named srun, squeue and so on
(node/runner/batch/slurm_client.py), in PATH and where the node has the commands, which hand
arguments, environment and streams over a socket; here the real command is run with them. The
programs that srun starts run in the same image.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import threading

from portal.node.batch import handover, real
from portal.node.batch.execute import programs, sockets
from portal.node.batch.options import OptionError, parse
from portal.node.batch.private import private_folder
from portal.node.batch.request import Request
from portal.node.batch.request import parse as parse_request

COMMANDS = frozenset(
    "sacct sacctmgr salloc sattach sbatch sbcast scancel scontrol sdiag sinfo sprio squeue sreport "
    "slipway srun sshare sstat strigger".split()
)
"""Slurm's commands, and this program."""
CLIENT = b"""\
#!/opt/slipway/bin/python -ISXutf8
import sys
sys.path.append("/opt/slipway")
from runner.batch.slurm_client import main
sys.exit(main())
"""
MAX_CALL = 8 << 20
"""Bytes of arguments and environment; Linux permits a process 6 MiB."""
STREAMS = 3


class CallError(Exception):
    """A call cannot be carried out; the text is for the caller."""


class StepServer:
    """Runs Slurm's commands for the programs in one container.

    `mask`: the signals that Slurm has blocked for the job; here all of them are.
    """

    def __init__(self, request: str, mask: set[int]) -> None:
        self.name = sockets.new_name()
        self._request = request
        self._mask = mask
        self._listener = sockets.listen(self.name)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def start(self) -> None:
        """Serve in the background."""
        threading.Thread(target=self._serve, name="steps", daemon=True).start()

    def stop(self) -> None:
        """Accept no more calls, and kill running commands, as Slurm kills a script's leftovers."""
        with self._lock:
            if not self._stopped:
                self._stopped = True
                self._listener.shutdown(socket.SHUT_RDWR)  # closing alone would not end `accept`
                self._listener.close()
            for child in self._running:
                child.kill()

    def _serve(self) -> None:
        while True:
            try:
                connection = sockets.accept(self._listener)
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        streams: list[int] = []
        with connection:
            try:
                call = receive(connection, streams)
                code = self._run(call, streams, connection)
            except (OSError, ValueError, LookupError, TypeError, CallError, OptionError) as error:
                code = 1
                if len(streams) == STREAMS:
                    with contextlib.suppress(OSError):
                        os.write(streams[2], os.fsencode(f"slurm: error: {error}\n"))
            for stream in streams:
                with contextlib.suppress(OSError):
                    os.close(stream)
            with contextlib.suppress(OSError):
                connection.sendall(struct.pack("=i", code))

    def _run(self, call: dict[str, object], streams: list[int], connection: socket.socket) -> int:
        words, environment = call["words"], call["environment"]
        folder, mask = call["folder"], call["umask"]
        if (
            not isinstance(words, list)
            or not isinstance(environment, dict)
            or not isinstance(folder, str)
            or not isinstance(mask, int)
        ):
            raise ValueError("this call is not understood")
        limits = _limits(call["limits"])
        name = os.path.basename(str(words[0]))
        if name not in COMMANDS:
            raise CallError(f"{name} is not a command of Slurm's")
        with contextlib.ExitStack() as stack:
            caller_arguments = list(map(str, words[1:]))
            root = f"/proc/{sockets.peer(connection)[0]}/root"
            path, arguments, outside = self._prepared(
                name, caller_arguments, environment, folder, root, stack
            )
            child = self._started([path, name, *arguments], outside, folder, mask, limits, streams)
            threading.Thread(target=_pass_signals, args=(connection, child), daemon=True).start()
            code = child.wait()
        self._running.discard(child)
        return code if code >= 0 else 128 - code

    def _started(
        self,
        words: list[str],
        environment: dict[str, str],
        folder: str,
        umask: int,
        limits: dict[int, tuple[int, int]],
        streams: list[int],
    ) -> subprocess.Popen[bytes]:
        """Start a command: its path, its name and its arguments. Raises CallError, OSError."""

        def begin() -> None:
            self._unblock()
            for number, limit in limits.items():
                resource.setrlimit(number, limit)

        with self._lock:
            if self._stopped:
                raise CallError("the job's script has ended")
            child = subprocess.Popen(
                words[1:],
                executable=words[0],
                env=environment,
                cwd=folder if os.path.isdir(folder) else None,
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                umask=umask,
                start_new_session=True,  # Slurm's signals reach its client in the container
                preexec_fn=begin,  # noqa: PLW1509 - a few system calls
            )
            self._running.add(child)
            return child

    def _unblock(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _prepared(
        self,
        name: str,
        arguments: list[str],
        environment: dict[str, str],
        folder: str,
        root: str,
        stack: contextlib.ExitStack,
    ) -> tuple[str, list[str], dict[str, str]]:
        """The path of a command, and its arguments and environment outside of the container."""
        path = real.find(name, os.environ)
        outside = handover.outside(environment, os.environ)
        if name == "slipway":
            path = parse_request(self._request).command
            if arguments[:1] == ["srun"]:  # in this image, unless it names another one
                outside[handover.REQUEST] = handover.plain(self._request)
        if not path:
            raise CallError(f"{name} was not found on this node")
        if name == "srun":
            line = parse(name, arguments)
            start = handover.step_folder(line.chdir, environment, folder)
            outside = handover.step_environment(
                environment, os.environ, self._request, start, names_step="job-name" in line.values
            )
            arguments, copies = programs.prepare(arguments, folder, environment, root)
            programs.send(copies, os.environ, self._unblock)
            for variable in programs.VARIABLES:
                outside.pop(variable, None)
            private = stack.enter_context(private_folder()) if _lists_programs(arguments) else ""
            arguments = in_image(arguments, self._request, private, folder)
        return path, arguments, outside


def write_client(folder: str, request: Request) -> list[tuple[str, str]]:
    """Write the client of Slurm's commands; returns it with each of its paths in the container.

    These are where an image has its programs, in case a profile resets PATH, and where the node has
    the commands, unless the user can write there.
    """
    client = os.path.join(folder, "client")
    with open(os.open(client, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700), "wb") as stream:
        stream.write(CLIENT)
    targets = {request.command, *(f"/usr/bin/{name}" for name in COMMANDS)}
    for path in (real.find(name, os.environ) for name in COMMANDS):
        if os.path.isabs(path) and not os.access(os.path.dirname(path), os.W_OK):
            targets.add(path)
    return [(client, target) for target in sorted(targets)]


def in_image(words: list[str], request: str, folder: str = "", start: str = "") -> list[str]:
    """Rewrite srun's arguments to start each component's program in the image; raises OptionError.

    `folder`: for a file that srun reads; without one it is in memory, for the program that this
    process becomes. `start`: the caller's folder.
    """
    program = [parse_request(request).command, "node-step", "--"]
    arguments: list[str] = []
    while True:
        line = parse("srun", words)
        if line.slipway_options:
            raise OptionError(
                f"--{line.slipway_options[0][0]}: a step runs in the image of its job"
            )
        if not line.command:
            return [*arguments, *line.options]
        end = line.command.index(":") if ":" in line.command else len(line.command)
        command, words = line.command[:end], line.command[end + 1 :]
        if _lists_programs(line.options):
            command = [_rewritten(os.path.join(start, command[0]), program, folder), *command[1:]]
            arguments += [*line.options, *command]
        else:
            arguments += [*line.options, *program, *command]
        if not words:
            return arguments
        arguments.append(":")


def _limits(requested: object) -> dict[int, tuple[int, int]]:
    """Return the caller's limits that differ from ours, capped by ours; raises ValueError."""
    limits: dict[int, tuple[int, int]] = {}
    for number, pair in enumerate(requested if isinstance(requested, list) else []):
        soft, hard = map(int, pair)
        current = resource.getrlimit(number)
        hard = min(hard, current[1], key=_size)
        limit = (min(soft, hard, key=_size), hard)
        if limit != current:
            limits[number] = limit
    return limits


def _size(limit: int) -> float:
    return float("inf") if limit == resource.RLIM_INFINITY else limit


def _lists_programs(words: list[str]) -> bool:
    return any("--multi-prog".startswith(word) and len(word) > 4 for word in words)


def _rewritten(path: str, program: list[str], folder: str) -> str:
    """A copy of a file for --multi-prog, whose lines have tasks, a program and its arguments."""
    import shlex  # noqa: PLC0415

    lines = []
    continued = False
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            words = [] if continued else line.split(maxsplit=1)
            names_program = len(words) == 2 and not words[0].startswith("#")
            lines.append(f"{words[0]} {shlex.join(program)} {words[1]}" if names_program else line)
            continued = line.endswith("\\\n")
    return _stored("".join(lines).encode("utf-8", "surrogateescape"), folder)


def _stored(content: bytes, folder: str) -> str:
    """Store the content in a folder or in memory; returns the file's path."""
    import tempfile  # noqa: PLC0415

    from portal.node.batch.submit.script import in_memory  # noqa: PLC0415

    if not folder:
        descriptor = in_memory(content)
        os.set_inheritable(descriptor, True)
        return f"/proc/self/fd/{descriptor}"
    descriptor, path = tempfile.mkstemp(dir=folder, prefix="multi-prog-")
    with open(descriptor, "wb") as stream:
        stream.write(content)
    return path


def receive(connection: socket.socket, streams: list[int]) -> dict[str, object]:
    """Read a call: its length, its text, and the three streams with the first byte."""
    size = array.array("i").itemsize
    ancillary_size = socket.CMSG_LEN(STREAMS * size)
    # Without this flag every command that is started meanwhile would inherit them.
    first, ancillary, _, _ = connection.recvmsg(4, ancillary_size, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received = array.array("i")
            received.frombytes(data[: len(data) // size * size])
            streams.extend(received)
    if len(streams) != STREAMS:
        raise ValueError("this call has no streams")
    (length,) = struct.unpack("=I", first + _exactly(connection, 4 - len(first)))
    if length > MAX_CALL:
        raise ValueError("this call is too long")
    text = _exactly(connection, length)
    try:
        call = json.loads(text.decode("utf-8", "surrogateescape"))
    except RecursionError:
        call = None
    if not isinstance(call, dict):
        raise ValueError("this call is not understood")
    return call


def _exactly(connection: socket.socket, length: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < length:
        piece = connection.recv(min(length - len(pieces), 1 << 16))
        if not piece:
            raise ValueError("this call is not complete")
        pieces += piece
    return bytes(pieces)


def _pass_signals(connection: socket.socket, child: subprocess.Popen[bytes]) -> None:
    """Send the command the signals that its client got; end it if the client was killed."""
    while True:
        try:
            data = connection.recv(1)
        except OSError:
            data = b""
        if not data:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
            return
        with contextlib.suppress(ProcessLookupError, ValueError):
            child.send_signal(data[0])
