"""Why sbatch refused a job, and which field of the request that is about."""

from __future__ import annotations

from portal.adapters.slurm.asking import DOWN
from portal.adapters.ssh.transport import Completed
from portal.core.session.pending_reasons import explain_reason, limit_of
from portal.errors import FieldError, GresUnknown, InvalidRequest, NodesUnknown, Unavailable

# Words of Slurm's messages (slurm_errno.c, and sbatch's own), the more specific ones first.
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
"""Fields of a last message that says less than those before it."""
_POLICY = "violates accounting/qos policy"
"""Slurm names the limit in a line before; the words "time limits" in this one mean nothing."""
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


def refusal(done: Completed) -> Exception:
    """The error for a submission that Slurm rejected."""
    if any(word in done.stderr for word in DOWN):
        return Unavailable(
            "Slurm does not answer, so nothing can be launched right now. Running sessions are "
            "not affected. Try again in a few minutes."
        )
    field, limit = _field(done.stderr)
    words = _plugin_words(done)
    text = words or limit or done.error_text().removeprefix(_PREFIX)
    kind: type[InvalidRequest] = InvalidRequest
    if _GRES in done.stderr and not words:
        kind = GresUnknown
    elif _NODES in done.stderr:
        kind = NodesUnknown
    return kind([FieldError(field, f"{REFUSED}{text}")])


def _field(stderr: str) -> tuple[str, str]:
    """The field that is wrong, and the limit that Slurm names in plain words, if it names one."""
    lines = [line.rpartition("error: ")[2].strip() for line in stderr.splitlines()]
    *before, last = [line for line in lines if line] or [""]
    if _POLICY in last.lower():
        for code in before:
            if limit := limit_of(code):
                usual = "qos" if code.startswith("QOS") else "account"
                text = f"{explain_reason(code).text.removesuffix('.')} ({code})"
                return _LIMITED.get(limit, usual), text
        return "", ""
    field = _named(last)
    if field in _VAGUE:
        field = next(filter(None, map(_named, before)), field)
    return field, ""


def _named(line: str) -> str:
    lower = line.lower()
    return next((field for words, field in _FIELDS if words in lower), "")


def _plugin_words(done: Completed) -> str:
    """The message of job_submit.lua about the requested GPU, which is clearer than Slurm's."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("sbatch: error: ")]
    if not lines or _GRES not in lines[-1]:
        return ""
    return " ".join(line.removeprefix("sbatch: error: ") for line in lines[:-1])
