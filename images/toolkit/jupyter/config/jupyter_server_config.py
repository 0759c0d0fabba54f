"""Makes server.py importable as `slipway_jupyter`, which apps/jupyterlab/start.sh configures."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

NAME = "slipway_jupyter"
if NAME not in sys.modules:
    spec = spec_from_file_location(NAME, Path(__file__).parents[1] / "server.py")
    sys.modules[NAME] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])
