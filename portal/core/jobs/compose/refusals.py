"""Maps an error of sbatch to a field of the request."""

from __future__ import annotations

import re

from portal.core.jobs.compose.command import OPTION_OF, field_value
from portal.core.jobs.compose.submission import JobRequest
from portal.errors import FieldError, InvalidRequest


class SubmissionRefused(Exception):
    """sbatch refused a job; the text is its output."""

    def __init__(self, text: str, field: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.field = field
        """The invalid field, if it is known by other means than the text."""


class ScriptUnreadable(Exception):
    """A file cannot be read as a script; the text says why."""


class ScriptTooLong(ScriptUnreadable):
    """The file is too long for the editor."""


# Words of Slurm's messages (slurm_errno.c, sbatch), most specific first.
_WORDS = (
    ("generic resource", "resources.fgpu"),
    ("memory specification", "resources.memory"),
    ("memory", "resources.memory"),
    ("CPU count", "resources.cpus"),
    ("cpus per task", "resources.cpus"),
    ("node count", "resources.nodes"),
    ("more processors requested", "resources.tasks"),
    ("number of tasks", "resources.tasks"),
    ("array", "array"),
    ("account/partition", "account"),
    ("invalid account", "account"),
    ("qos", "qos"),
    ("reservation", "reservation"),
    ("feature", "constraint"),
    ("partition", "resource_group"),
    ("time limit", "time_limit"),
    ("time specification", "time_limit"),
    ("batch script", "script"),
    ("unable to open file", "path"),
    ("DOS line breaks", "script"),
    ("invalid option", "options"),
    ("unrecognized option", "options"),
    ("node configuration", "resources"),
)
_OPTION = re.compile(r"--([a-z][a-z-]+)")
_FIELD_OF = {option: field for field, option in OPTION_OF.items()} | {
    "mount": "mounts",
    "chdir": "directory",
    "env-file": "options",
}
_NOTE = "slipway: note: "
"""Prefix of notes that `slipway sbatch` adds to sbatch's output; pages have their own words."""
_LINE = re.compile(r"line \d+ of the script|^#SBATCH")


def refusal(error: SubmissionRefused, request: JobRequest) -> InvalidRequest:
    """The refusal as an error of the field that it concerns."""
    text = _last_words(error.text)
    return InvalidRequest([FieldError(error.field or field_of(text, request), text)])


def field_of(text: str, request: JobRequest) -> str:
    """The field that a message of sbatch concerns; "" if the message does not say.

    A value that is not in its field comes from the typed options or from the script.
    """
    script_field = "path" if request.script is None else "script"
    if _LINE.search(text):
        return script_field
    field = _match_words(text)
    if field == "account" and not request.account and request.resource_group:
        field = "resource_group"  # it does not accept the default account
    if field in ("", "resources", "options"):
        return field if field != "options" or request.options else script_field
    if field in ("script", "path"):
        return script_field
    if field_value(request, field) or (field == "resources.gpu_kind" and request.resources.fgpu):
        return field
    option = OPTION_OF.get(field, field)
    typed = any(word.startswith(f"--{option}") for word in request.options)
    return "options" if typed or (request.options and "--" not in text) else script_field


def _match_words(text: str) -> str:
    option = _OPTION.search(text)
    if option and option[1] in _FIELD_OF:
        return _FIELD_OF[option[1]]
    lower = text.lower()
    if option and not any(word.lower() in lower for word, _ in _WORDS):
        return "options"
    return next((field for word, field in _WORDS if word.lower() in lower), "")


def _last_words(text: str) -> str:
    """sbatch's last message, with earlier ones such as the submit plug-in's."""
    stripped = (line.strip() for line in text.splitlines())
    lines = [line for line in stripped if line and not line.startswith(_NOTE)]
    plain = [re.sub(r"^(sbatch|slipway): (error: )?", "", line) for line in lines]
    if not plain:
        return "Slurm refused the job without a reason"
    last = plain[-1].removeprefix("Batch job submission failed: ")
    before = [line for line in plain[:-1] if not line.startswith(("Try ", "Usage"))]
    if last.startswith("Try ") and before:
        return before[-1]
    return f"{last}: {'; '.join(before[-3:])}" if before else last
