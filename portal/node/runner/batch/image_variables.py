"""Variables that an image makes of the caller's, such as `export LANG="${LANG:-C}"`.

Those of images from registries are of this kind, and paths that become longer. Apptainer has not
seen the job's environment, so the image's scripts read it here.
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

    Empty if there are none, or if the image's own shell cannot tell them.
    """
    differ = {
        name
        for name, value in container.items()
        if job.get(name, value) != value and name not in _OTHERS and not name.startswith(_PREFIXES)
    }
    names = differ & _names(scripts) if differ else differ
    if not names:
        return {}
    found = _evaluated({**container, **{name: job[name] for name in names}}, scripts)
    return {name: found[name] for name in names if name in found}


def _names(scripts: str) -> set[str]:
    """The names of variables that the image's scripts read."""
    found: set[str] = set()
    for path in glob.glob(scripts):
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            found.update(_READ.findall(stream.read()))
    return found


def _evaluated(environment: Mapping[str, str], scripts: str) -> dict[str, str]:
    """The environment that the scripts make of this one."""
    import subprocess  # noqa: PLC0415 - few jobs need it

    try:
        done = subprocess.run(
            ["/bin/sh", "-c", _LINE % scripts],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except OSError:
        return {}
    return pairs(done.stdout) if done.returncode == 0 else {}


def pairs(block: bytes) -> dict[str, str]:
    """An environment as the kernel has it."""
    entries: Iterable[str] = os.fsdecode(block).split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)
