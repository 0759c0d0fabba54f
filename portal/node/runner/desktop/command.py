"""The desktop app's program: `desktop COMMAND…` starts an X server and the image's desktop on it.

It ends when the desktop does, so that logging out ends the app.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys

from . import xserver
from .server import Desktop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FAILED = 70
PAUSE = 0.2


def main() -> int:
    """Run the desktop given as arguments until it ends; returns the exit code."""
    environment = os.environ
    toolkit, folder = environment["SLIPWAY_TOOLKIT"], environment["SLIPWAY_RUN"]
    try:
        xserver.write_authority(f"{folder}/Xauthority")
        server, display = _start_server(toolkit, folder, environment.get("SLIPWAY_NAME", ""))
    except (OSError, xserver.NoServer) as error:
        print(error, flush=True)
        return FAILED
    with open(f"{toolkit}/share/desktop.html", "rb") as file:
        page = file.read()
    origin = environment.get("SLIPWAY_ORIGIN", "")
    desktop = Desktop(page, f"{folder}/vnc.sock", origin)
    programs = start_programs(sys.argv[1:], variables(environment, folder, display, toolkit))
    return asyncio.run(_run(desktop, environment["SLIPWAY_SOCKET"], server, programs))


def _start_server(toolkit: str, folder: str, name: str) -> tuple[subprocess.Popen[bytes], str]:
    try:
        return xserver.start(toolkit, folder, name)
    except xserver.NoServer:
        # The image's OpenGL driver may be for another C library.
        print("The X server starts again, without OpenGL.", flush=True)
        return xserver.start(toolkit, folder, name, ("-extension", "GLX"))


def variables(
    environment: Mapping[str, str], folder: str, display: str, toolkit: str
) -> dict[str, str]:
    """Return the environment of the desktop's programs; their runtime files are in `folder`."""
    runtime = f"{folder}/runtime"
    os.makedirs(runtime, mode=0o700, exist_ok=True)
    settings = environment.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    return {
        **environment,
        "DISPLAY": display,
        "XAUTHORITY": f"{folder}/Xauthority",
        "ICEAUTHORITY": f"{folder}/ICEauthority",
        "XDG_RUNTIME_DIR": runtime,
        "XDG_SESSION_TYPE": "x11",
        # Ours first: no compositor, no screen locker, no power manager.
        "XDG_CONFIG_DIRS": f"{toolkit}/desktop/xdg:{settings}",
        # No second bus for screen readers, since there is no sound.
        "NO_AT_BRIDGE": "1",
        "GTK_A11Y": "none",
    }


def start_programs(words: list[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the desktop, with a D-Bus session bus if the image has one."""
    bus = shutil.which("dbus-run-session", path=environment.get("PATH"))
    around = [bus, "--"] if bus else []
    home = environment.get("SLIPWAY_WORKDIR") or environment.get("HOME") or "/"
    return subprocess.Popen(
        [*around, *words], env=dict(environment), cwd=home, stdin=subprocess.DEVNULL
    )


async def _run(
    desktop: Desktop,
    path: str,
    server: subprocess.Popen[bytes],
    programs: subprocess.Popen[bytes],
) -> int:
    async with await desktop.serve(path):
        while True:
            if server.poll() is not None:
                print(f"The X server has ended (exit code {server.returncode}).", flush=True)
                return FAILED
            if programs.poll() is not None:
                print(f"The desktop has ended (exit code {programs.returncode}).", flush=True)
                server.terminate()
                return 0 if programs.returncode == 0 else FAILED
            await asyncio.sleep(PAUSE)
