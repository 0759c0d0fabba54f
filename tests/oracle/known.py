"""The differences between a job in an image and sbatch's own that have to be there, and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Values = Callable[[str | None, str | None], bool]

CLIENTS = "/opt/slipway/slurm"
"""Where Slurm's commands are in images (node/runner/batch/command.py)."""
IMAGES_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Apptainer's, for an image that names none."""
_NO_PROGRAM = re.compile(
    r"^(?:slurmstepd-\w+: error: execve\(\): (?=.*: No such file)|Slipway: \S+ has no )"
    r"(\S+?)(?:: No such file or directory)?$",
    re.MULTILINE,
)
"""What Slurm and what we say of a step's program that is not there."""


def _only_in_image(plain: str | None, _imaged: str | None) -> bool:
    return plain is None


def _clients_first(plain: str | None, imaged: str | None) -> bool:
    return imaged in (f"{CLIENTS}:{IMAGES_PATH}", f"{CLIENTS}:{plain}")


def _images_libraries(_plain: str | None, imaged: str | None) -> bool:
    return imaged == "/.singularity.d/libs"


def _same_but_for_a_missing_program(plain: str | None, imaged: str | None) -> bool:
    """Of lines that two processes write at once, the order is Linux's."""
    return _NO_PROGRAM.search(imaged or "") is not None and _others(plain) == _others(imaged)


def _others(text: str | None) -> list[str]:
    return sorted(_NO_PROGRAM.sub(r"no \1", text or "").splitlines())


def _temporary_name(plain: str | None, imaged: str | None) -> bool:
    """sbatch got a copy of the script under the same name."""
    name = (plain or "").rpartition("/")[2]
    return imaged == f"/tmp/slipway-X/{name}"


@dataclass(frozen=True)
class Known:
    """One kind of difference."""

    place: str
    """A regular expression for all of the place."""
    values: Values
    why: str


KNOWN = (
    Known(
        r"environment:PATH in .*",
        _clients_first,
        "the image's PATH or the script's; Slurm's commands, which no image has, are first",
    ),
    Known(
        r"environment:LD_LIBRARY_PATH in .*",
        _images_libraries,
        "the node's libraries are not for programs of the image; Apptainer adds the GPU driver's",
    ),
    Known(
        r"file:.*",
        _same_but_for_a_missing_program,
        "the image is named that has no such program",
    ),
    Known(
        r"environment:(APPTAINER|SINGULARITY)_"
        r"(APPNAME|BIND|COMMAND|CONTAINER|ENVIRONMENT|INSTANCE|NAME|SHARENS_MASTER) in .*",
        _only_in_image,
        "Apptainer tells programs that they run in a container",
    ),
    Known(
        r"environment:(SLIPWAY_SLURM|SLIPWAY_SUPERVISOR|USER_PATH) in .*",
        _only_in_image,
        "where Slurm's commands in the image reach Slurm; the PATH that Apptainer was started with",
    ),
    Known(
        r"scontrol:.* command",
        _temporary_name,
        "sbatch records the path that it read: a copy, where no user namespace can show it the "
        "user's own",
    ),
)


def explanation(place: str, plain: str | None, imaged: str | None) -> str:
    """Why this difference has to be there; "" if nothing explains it."""
    for known in KNOWN:
        if re.fullmatch(known.place, place) and known.values(plain, imaged):
            return known.why
    return ""
