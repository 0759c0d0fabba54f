"""Read by every Python of a session at its start (PYTHONPATH), before the image's own of this name.

People's dotfiles set PYTHONPATH anew: the environment of their packages leads to the same module
(node/runner/apps/packages.py). For old Pythons, too: plain syntax.
"""

import os
import sys

import slipway_python  # noqa: F401


def next_one():
    """Run what this file hides: the image's own sitecustomize, if it has one."""
    from importlib.machinery import PathFinder  # noqa: PLC0415
    from importlib.util import module_from_spec  # noqa: PLC0415

    here = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec(__name__, [p for p in sys.path if os.path.abspath(p) != here])
    if spec is not None and spec.loader is not None:
        module = sys.modules[__name__] = module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "sitecustomize" and sys.version_info >= (3, 5):
    next_one()
