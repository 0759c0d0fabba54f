"""Variables that an image derives from the caller's, such as `export LANG="${LANG:-C}"`.

Images from registries have such variables, and images may extend paths. Apptainer has not seen the
job's environment, so the image's scripts are evaluated with it here.
"""

from __future__ import annotations

import glob
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCRIPTS = "/.singularity.d/env/*.sh"
"""Apptainer executes these in each container."""
_READ = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_OTHERS = frozenset("HOME LD_LIBRARY_PATH PATH PROMPT_COMMAND PS1 PWD".split())
_PREFIXES = ("APPTAINER", "SINGULARITY", "SING_", "SLIPWAY_")
_LINE = 'for script in %s; do . "$script"; done; exec cat /proc/self/environ'


def from_job(
    container: Mapping[str, str], job: Mapping[str, str], scripts: str = SCRIPTS
) -> dict[str, str]:
    """Variables of the container that have other values with the job's environment.

    Empty if there are none, or if the image's own shell cannot evaluate them.
    """
    differ = {
        name
        for name, value in container.items()
        if job.get(name, value) != value and name not in _OTHERS and not name.startswith(_PREFIXES)
    }
    names = differ & _names(scripts) if differ else differ
    if not names:
        return {}
    evaluated = _evaluated({**container, **{name: job[name] for name in names}}, scripts)
    return {name: evaluated[name] for name in names if name in evaluated}


def _names(scripts: str) -> set[str]:
    """Return the names of the variables that the image's scripts read."""
    names: set[str] = set()
    for path in glob.glob(scripts):
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            names.update(_READ.findall(stream.read()))
    return names


def _evaluated(environment: Mapping[str, str], scripts: str) -> dict[str, str]:
    """Run the scripts in an environment; returns the resulting one."""
    import subprocess  # noqa: PLC0415 - few jobs need it

    try:
        process = subprocess.run(
            ["/bin/sh", "-c", _LINE % scripts],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except OSError:
        return {}
    return pairs(process.stdout) if process.returncode == 0 else {}


def pairs(block: bytes) -> dict[str, str]:
    """Parse an environment in the kernel's format."""
    entries: Iterable[str] = os.fsdecode(block).split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)
