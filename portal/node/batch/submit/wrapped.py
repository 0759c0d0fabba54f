"""The script that is submitted instead of the user's, which it contains unchanged.

sbatch finds the same directives in it, so all options keep Slurm's precedence. On the node it
starts this program (execute/run.py), which runs the user's script in the image.
"""

from __future__ import annotations

import hashlib
import shlex

from portal.node.batch.submit.directives import header_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.batch.request import Request

INTERPRETER = b"#!/bin/sh"
NO_SCRIPT = b"#!"
WRAP = INTERPRETER + b"\n# This script was created by sbatch --wrap.\n\n"


def is_complete(script: bytes) -> bool:
    """Whether sbatch would accept the script; sbatch itself reports the errors of others."""
    return script.startswith(NO_SCRIPT) and b"\0" not in script and b"\r\n" not in script


def batch_script(script: bytes, request: Request) -> bytes:
    """Return a script that sbatch submits as the same job."""
    _, _, text = script.partition(b"\n")
    header = text[: header_size(text)]
    if header and not header.endswith(b"\n"):
        header += b"\n"
    return INTERPRETER + b"\n" + header + _body(script, request)


def wrap_text(command: bytes, request: Request) -> bytes:
    """Return the value for --wrap, from which sbatch makes a script with the same first lines."""
    return _body(WRAP + command + b"\n", request)


def _body(script: bytes, request: Request) -> bytes:
    mark = b"SLIPWAY-" + hashlib.sha256(script).hexdigest()[:24].encode()
    program = shlex.quote(request.command).encode("utf-8", "surrogateescape")
    missing = b"Slipway is not installed on $SLURMD_NODENAME ($1). Tell the administrators."
    lines = [
        b"# Runs the script below in the image " + _printable(request.name) + b" (slipway sbatch).",
        # No variables: they might have the name of one of the job's.
        b"set -- " + program + b' node-batch "$0" "$@"',
        b'[ -x "$1" ] || { echo "' + missing + b'" >&2; exit 1; }',
        b'exec "$@" 9<<\'' + mark + b"' 8<<ENVIRONMENT",
        request.text().encode("ascii"),
        b"%d" % len(script),
        script + (b"" if script.endswith(b"\n") else b"\n") + mark,
        # A shell drops variables and changes others: this process began with those of the job.
        b"$(/usr/bin/base64 -w 0 /proc/$$/environ 2> /dev/null)",
        b"ENVIRONMENT",
    ]
    return b"\n".join(lines) + b"\n"


def _printable(name: str) -> bytes:
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in name).encode()


def unwrap(text: bytes) -> tuple[str, bytes]:
    """Split the input from the submitted script into the request's text and the user's script.

    Raises ValueError: if a signal reaches all of its processes, the shell's writer may end early.
    """
    request, _, content = text.partition(b"\n")
    size, _, script = content.partition(b"\n")
    if len(script) < int(size):
        raise ValueError("the job's script is not complete")
    return request.decode("ascii"), script[: int(size)]
