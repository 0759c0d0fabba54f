"""Maps sbatch's error messages to fields of the request and texts for the user."""

from __future__ import annotations

from portal.adapters.slurm.asking import DOWN
from portal.adapters.ssh.transport import Completed
from portal.core.session.pending_reasons import explain_reason, limit_of
from portal.errors import FieldError, GresUnknown, InvalidRequest, NodesUnknown, Unavailable

# Parts of Slurm's messages (slurm_errno.c, sbatch), the more specific ones first.
_FIELDS = (
    ("invalid account", "account"),
    ("invalid qos", "qos"),
    ("qos usage threshold", "qos"),
    ("reservation", "reservation"),
    ("feature specification", "constraint"),
    ("generic resource", "resources.fgpu"),
    ("memory", "resources.memory"),
    ("cpu count", "resources.cpus"),
    ("more processors requested", "resources.cpus"),
    ("partition", "resource_group"),
    ("time limit", "time_limit"),
    ("node configuration", "resources"),
    ("required node not available", "resources"),
)
_VAGUE = ("", "resources")
"""Fields of a last message that is less specific than the messages before it."""
_POLICY = "violates accounting/qos policy"
"""Slurm names the limit in a preceding line; "time limits" in this line means nothing."""
_LIMITED = {
    "Cpu": "resources.cpus",
    "CPU": "resources.cpus",
    "Mem": "resources.memory",
    "Memory": "resources.memory",
    "GRES": "resources.fgpu",
    "Wall": "time_limit",
    "WallDuration": "time_limit",
    "SubmitJob": "count",
    "SubmitJobs": "count",
    "Jobs": "count",
}
_GRES = "Invalid generic resource"
_NODES = "Requested node configuration is not available"
REFUSED = "Slurm refused it: "
_PREFIX = "Batch job submission failed: "


def refusal(result: Completed) -> Exception:
    """The error for a submission that Slurm rejected."""
    if any(word in result.stderr for word in DOWN):
        return Unavailable(
            "Slurm does not answer, so nothing can be launched right now. Running sessions are "
            "not affected. Try again in a few minutes."
        )
    field, limit = _field(result.stderr)
    words = _plugin_words(result)
    text = words or limit or result.error_text().removeprefix(_PREFIX)
    kind: type[InvalidRequest] = InvalidRequest
    if _GRES in result.stderr and not words:
        kind = GresUnknown
    elif _NODES in result.stderr:
        kind = NodesUnknown
    return kind([FieldError(field, f"{REFUSED}{text}")])


def _field(stderr: str) -> tuple[str, str]:
    """The invalid field, and the limit that Slurm names, as a text; "" if it names none."""
    lines = [line.rpartition("error: ")[2].strip() for line in stderr.splitlines()]
    *earlier, last = [line for line in lines if line] or [""]
    if _POLICY in last.lower():
        for code in earlier:
            if limit := limit_of(code):
                usual = "qos" if code.startswith("QOS") else "account"
                text = f"{explain_reason(code).text.removesuffix('.')} ({code})"
                return _LIMITED.get(limit, usual), text
        return "", ""
    field = _field_of(last)
    if field in _VAGUE:
        field = next(filter(None, map(_field_of, earlier)), field)
    return field, ""


def _field_of(line: str) -> str:
    lower = line.lower()
    return next((field for words, field in _FIELDS if words in lower), "")


def _plugin_words(result: Completed) -> str:
    """What a site's job_submit plug-in says of the requested GPU, which is clearer than Slurm's."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("sbatch: error: ")]
    if not lines or _GRES not in lines[-1]:
        return ""
    return " ".join(line.removeprefix("sbatch: error: ") for line in lines[:-1])
