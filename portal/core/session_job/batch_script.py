"""Renders the batch script of a session's job."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

from jinja2 import Environment, StrictUndefined

from portal.core.session_job.description import JobDescription
from portal.core.slurm_options import is_group_name

_SAFE = re.compile(r"[A-Za-z0-9._/@%+=:,-]*")

# Account names and feature expressions occur only in #SBATCH lines, between double quotes.
_QUOTED = re.compile(r"[^\s\x00-\x1f\x7f\"'\\]*")

# Folder names are quoted for the shell.
_ONE_LINE = re.compile(r"[^\x00-\x1f\x7f]*")

_RULES: Mapping[str, Callable[[str], object]] = {
    "options": _QUOTED.fullmatch,
    "mounts": _ONE_LINE.fullmatch,
    "partition": is_group_name,
}


def render_script(job: JobDescription, template_text: str) -> str:
    """Render the template; raises ValueError if a value has characters special to a shell."""
    for key, value in asdict(job).items():
        safe = _RULES.get(key, _SAFE.fullmatch)
        if not all(map(safe, _texts(value))):
            raise ValueError(f"{key} has characters that do not belong in a batch script")
    # HTML escaping would corrupt a shell script; the check above prevents injection.
    environment = Environment(
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["quoted"] = shlex.quote
    return environment.from_string(template_text).render(job=job)


def _texts(value: object) -> Iterator[str]:
    """All strings in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _texts(inner)
