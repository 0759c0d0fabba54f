"""Which field of a request sbatch's refusal is about."""

from __future__ import annotations

import re

from portal.core.jobs.compose.command import OPTION_OF, given
from portal.core.jobs.compose.submission import JobRequest
from portal.errors import FieldError, InvalidRequest


class SubmissionRefused(Exception):
    """sbatch refused a job; the text is what it wrote."""

    def __init__(self, text: str, field: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.field = field
        """The field that is wrong, if it is known by other means than the text."""


class ScriptUnreadable(Exception):
    """A file cannot be read as a script; the text says why."""


class ScriptTooLong(ScriptUnreadable):
    """It is a file, but too long for the editor."""


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
"""What `slipway sbatch` adds to sbatch's words; pages say it in their own way."""
_LINE = re.compile(r"line \d+ of the script|^#SBATCH")


def refusal(error: SubmissionRefused, request: JobRequest) -> InvalidRequest:
    """The refusal as an error of the field that it is about."""
    text = _last_words(error.text)
    return InvalidRequest([FieldError(error.field or field_of(text, request), text)])


def field_of(text: str, request: JobRequest) -> str:
    """The field that a message of sbatch is about; "" if it does not say.

    What was not given in its own field comes from the options that were typed, or the script.
    """
    where = "path" if request.script is None else "script"
    if _LINE.search(text):
        return where
    field = _named(text)
    if field == "account" and not request.account and request.resource_group:
        field = "resource_group"  # it is closed to the default account
    if field in ("", "resources", "options"):
        return field if field != "options" or request.options else where
    if field in ("script", "path"):
        return where
    if given(request, field) or (field == "resources.gpu_kind" and request.resources.fgpu):
        return field
    option = OPTION_OF.get(field, field)
    typed = any(word.startswith(f"--{option}") for word in request.options)
    return "options" if typed or (request.options and "--" not in text) else where


def _named(text: str) -> str:
    option = _OPTION.search(text)
    if option and option[1] in _FIELD_OF:
        return _FIELD_OF[option[1]]
    lower = text.lower()
    if option and not any(word.lower() in lower for word, _ in _WORDS):
        return "options"
    return next((field for word, field in _WORDS if word.lower() in lower), "")


def _last_words(text: str) -> str:
    """sbatch's last message, with the plug-in's before it if Slurm's own says nothing."""
    said = (line.strip() for line in text.splitlines())
    lines = [line for line in said if line and not line.startswith(_NOTE)]
    plain = [re.sub(r"^(sbatch|slipway): (error: )?", "", line) for line in lines]
    if not plain:
        return "Slurm refused the job without a reason"
    last = plain[-1].removeprefix("Batch job submission failed: ")
    before = [line for line in plain[:-1] if not line.startswith(("Try ", "Usage"))]
    if last.startswith("Try ") and before:
        return before[-1]
    return f"{last}: {'; '.join(before[-3:])}" if before else last
