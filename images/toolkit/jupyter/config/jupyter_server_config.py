"""Makes server.py importable as `slipway_jupyter`, which apps/jupyterlab/start.sh configures; and
opens file browsers in the session's working directory."""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import jupyter_server

NAME = "slipway_jupyter"
if NAME not in sys.modules:
    spec = spec_from_file_location(NAME, Path(__file__).parents[1] / "server.py")
    sys.modules[NAME] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])

HOME = os.environ.get("HOME", "/")
# The root of the file browser, as in apps/jupyterlab/start.sh.
ROOT = os.environ.get("SLIPWAY_FILES") or HOME
WORKDIR = os.environ.get("SLIPWAY_WORKDIR") or HOME
settings = get_config()  # noqa: F821  (defined by traitlets)
if jupyter_server.version_info[0] >= 2:
    # The server's own setting of this name still works there, with a warning in the log.
    inside = os.path.relpath(WORKDIR, ROOT)
    settings.ContentsManager.preferred_dir = "" if inside.startswith(".") else inside
else:
    settings.ServerApp.preferred_dir = WORKDIR
