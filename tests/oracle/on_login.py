"""What the oracle runs on the login node: `python3 on_login.py submit|files`, JSON in and out.

It needs the standard library only. Contents may be any bytes, so they travel in base64.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LARGEST = 1 << 20
"""Bytes of a file that are compared."""


def submit(run: dict[str, Any]) -> dict[str, Any]:
    """Run a command that submits a job: its exit code, output and errors."""
    base = {name: os.environ[name] for name in ("HOME", "USER", "LOGNAME", "PATH", "SHELL")}
    with open(run["stdin"] or os.devnull, "rb") as stream:
        ended = subprocess.run(
            run["argv"],
            cwd=run["folder"],
            env={**base, **run["environment"]},
            stdin=stream,
            capture_output=True,
            umask=int(run["mask"] or "022", 8),
            timeout=60,
            check=False,
        )
    return {"code": ended.returncode, "out": _text(ended.stdout), "err": _text(ended.stderr)}


def files(folder: str) -> dict[str, dict[str, str]]:
    """The files below a folder by path: kind and mode, and the content or the target of a link."""
    entries = {}
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(parent, name)
            status = os.lstat(path)
            content = b""
            if stat.S_ISLNK(status.st_mode):
                content = os.fsencode(os.readlink(path))
            elif stat.S_ISREG(status.st_mode) and os.access(path, os.R_OK):
                with open(path, "rb") as stream:
                    content = stream.read(LARGEST)
            entries[os.path.relpath(path, folder)] = {
                "mode": stat.filemode(status.st_mode),
                "content": base64.b64encode(content).decode("ascii"),
            }
    return entries


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def main() -> None:
    """Answer the JSON list on standard input, item by item."""
    actions: dict[str, Callable[[Any], dict[str, Any]]] = {"submit": submit, "files": files}
    action = actions[sys.argv[1]]
    json.dump([action(item) for item in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
