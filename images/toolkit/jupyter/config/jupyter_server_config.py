"""Settings of a session's Jupyter server besides its command line (apps/jupyterlab/start.sh).

Makes server.py importable as `slipway_jupyter`, joins the user's settings with ours, and opens file
browsers in the session's working directory.
"""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import jupyter_server


def load(name, file):
    """A module of the toolkit's, importable by this name."""
    if name not in sys.modules:
        spec = spec_from_file_location(name, Path(__file__).parents[1] / file)
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


settings = get_config()  # noqa: F821  (defined by traitlets)
if jupyter_server.version_info[0] >= 2:
    load("slipway_outputs", "outputs.py")
    load("slipway_recording", "recording.py")
    settings.ServerApp.kernel_websocket_connection_class = "slipway_recording.Connection"
load("slipway_jupyter", "server.py")
# Not in another server that a user starts in this one's terminal, with the same variables.
if "--ServerApp.sock=" + os.environ.get("SLIPWAY_SOCKET", "") in sys.argv:
    load("slipway_settings", "settings.py").join(
        settings,
        sys.argv[1:],
        {
            # No pings on WebSockets: they would look like use; TCP keep-alive detects dead peers.
            ("ServerApp", "tornado_settings"): ({}, {"ws_ping_interval": 0}),
            # Not login shells: /etc/profile of many images would reset their PATH.
            ("ServerApp", "terminado_settings"): ({"shell_command": [os.environ["SHELL"]]}, {}),
            ("ServerApp", "jpserver_extensions"): (
                {"jupyter_lsp": False},
                {"slipway_jupyter": True},
            ),
        },
    )
    # What users install is for kernels, terminals and what they start, not for this Python.
    os.environ["PATH"] = os.environ.pop("SLIPWAY_USERS_PATH", os.environ["PATH"])
    if os.environ.pop("SLIPWAY_USERS_NOUSERSITE", "") == "":
        os.environ.pop("PYTHONNOUSERSITE", None)

HOME = os.environ.get("HOME", "/")
# The root of the file browser, as in apps/jupyterlab/start.sh.
ROOT = os.environ.get("SLIPWAY_FILES") or HOME
WORKDIR = os.environ.get("SLIPWAY_WORKDIR") or HOME
if jupyter_server.version_info[0] >= 2:
    # The server's own setting of this name still works there, with a warning in the log.
    inside = os.path.relpath(WORKDIR, ROOT)
    settings.ContentsManager.preferred_dir = "" if inside.startswith(".") else inside
else:
    settings.ServerApp.preferred_dir = WORKDIR
