"""What became of a job, as texts by place, and the differences between two such outcomes.

Places are such as "submission:output", "record:job State", "file:data/deep/file" and
"environment:PATH in environment". Numbers, times and folders that differ between any two jobs are
replaced first. The cluster's first job has a number that no size in a case has (FirstJobId).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.oracle.known import explanation

Outcome = Mapping[str, str]

RECORD = (
    "JobName", "Partition", "Account", "QOS", "State", "ExitCode", "DerivedExitCode", "ReqCPUS",
    "AllocCPUS", "ReqMem", "NTasks", "NNodes", "NodeList", "TimelimitRaw", "Restarts", "Comment",
    "Constraints", "WorkDir",
)  # fmt: skip
"""sacct's fields that must be equal."""

OWN_FIELDS = {
    "accrue_time", "command", "deadline", "derived_exit_code", "eligible_time", "end_time",
    "flags", "job_id", "last_sched_evaluation", "licenses_allocated", "pre_sus_time",
    "preemptable_time",
    "preempt_time", "priority", "resize_time", "sluid", "start_time", "step_id", "submit_line",
    "submit_time", "suspend_time", "job_resources", "job_state", "state_reason", "exit_code",
    "association_id", "array_job_id", "stepmgr",
}  # fmt: skip
"""Fields of `scontrol show job --json` that differ by themselves, or that RECORD has as well."""

OWN_VARIABLES = {
    "SLURM_ARRAY_JOB_ID", "SLURM_JOBID", "SLURM_JOB_END_TIME", "SLURM_JOB_ID",
    "SLURM_JOB_START_TIME", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_SRUN_COMM_HOST",
    "SLURM_SRUN_COMM_PORT", "SLURM_STEPID", "SLURM_STEP_LAUNCHER_PORT", "SLURM_TASK_PID",
    "SLURM_CPU_BIND", "SLURM_CPU_BIND_LIST", "SLURM_STEP_NODELIST", "_",
}  # fmt: skip
"""Variables that differ between any two jobs."""


@dataclass(frozen=True)
class Difference:
    """One difference; "-" is sbatch's, "+" that of the job in the image."""

    place: str
    plain: str | None
    imaged: str | None
    why: str = ""
    """Why it has to be there, if that is known (known.py)."""

    def text(self) -> str:
        """The difference in at most a few lines."""
        lines = [self.place, f"  - {_short(self.plain)}", f"  + {_short(self.imaged)}"]
        return "\n".join([*lines, f"  ({self.why})"] if self.why else lines)


def _short(value: str | None) -> str:
    if value is None:
        return "(not there)"
    return repr(value) if len(value) <= 500 else f"{value[:250]!r} … {value[-250:]!r}"


@dataclass(frozen=True)
class Common:
    """Replaces in a text what differs between any two jobs."""

    folder: str
    """The run's folder."""
    numbers: frozenset[str]
    """The job's number, and of an array those of its tasks."""

    def __call__(self, text: str) -> str:
        """The text without the run's folder, job numbers, times, and PIDs that Slurm writes."""
        text = text.replace(self.folder, "@")
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?", "T", text)
        text = re.sub(r"(?:/tmp|@/tmp)/slipway-\w{8}/", "/tmp/slipway-X/", text)
        text = re.sub(r"/tmp/tmp[.\w]+", "/tmp/tmp.X", text)
        text = re.sub(r"(?i)\bpid[ =:]+\d+", "pid N", text)
        if self.numbers:
            text = re.sub(rf"(?<!\d)0*(?:{'|'.join(self.numbers)})(?!\d)", "N", text)
        return text


def differences(plain: Outcome, imaged: Outcome) -> list[Difference]:
    """All differences, known ones with their explanation."""
    pairs = {place: (plain.get(place), imaged.get(place)) for place in sorted({*plain, *imaged})}
    return [
        Difference(place, *pair, explanation(place, *pair))
        for place, pair in pairs.items()
        if pair[0] != pair[1]
    ]


def unexplained(all_of_them: Iterable[Difference]) -> list[Difference]:
    """Those that nothing explains."""
    return [difference for difference in all_of_them if not difference.why]


def submission(answer: Mapping[str, Any], common: Common) -> dict[str, str]:
    """The outcome of submitting: exit code, output and errors."""
    return {
        "submission:code": str(answer["code"]),
        "submission:output": common(str(answer["out"])),
        "submission:errors": common(str(answer["err"])),
    }


def record(lines: str, number: str, common: Common) -> dict[str, str]:
    """sacct's records of a job, its tasks and steps (JobID and RECORD, divided by "|")."""
    places = {}
    for line in lines.splitlines():
        job, *values = line.split("|")
        if len(values) != len(RECORD):
            continue
        step = job.removeprefix(number) or "job"
        for name, value in zip(RECORD, values, strict=True):
            places[f"record:{step} {name}"] = common(value)
    return places


def controller(jobs: Iterable[Mapping[str, Any]], common: Common) -> dict[str, str]:
    """The fields of scontrol's records, of an array for each task."""
    places = {}
    for job in jobs:
        task = (job.get("array_task_id") or {}).get("number") or ""
        for name, value in job.items():
            if name not in OWN_FIELDS:
                places[f"scontrol:{task} {name}"] = common(str(value))
        places[f"scontrol:{task} command"] = common(str(job.get("command", "")))
    return places


def files(listing: Mapping[str, Mapping[str, str]], common: Common) -> dict[str, str]:
    """Modes and contents of files; of those named environment…, each variable."""
    places = {}
    for path, entry in listing.items():
        name = common(path)
        places[f"mode:{name}"] = entry["mode"]
        data = base64.b64decode(entry["content"])
        base = path.rpartition("/")[2]
        if base.startswith("environment"):
            places |= variables(data, name, common)
        elif base.startswith("signals"):  # the order of those that came together is Linux's
            places[f"file:{name}"] = " ".join(sorted(data.decode().split()))
        elif data.startswith(b"\x7fELF"):
            places[f"file:{name}"] = "a core dump"
        else:
            text = data.decode("utf-8", "backslashreplace")
            places[f"file:{name}"] = common(text)
    return places


def variables(data: bytes, name: str, common: Common) -> dict[str, str]:
    """The variables of an environment as the kernel shows it."""
    places = {}
    for pair in data.split(b"\0"):
        variable, equals, value = pair.decode("utf-8", "backslashreplace").partition("=")
        if equals and variable not in OWN_VARIABLES:
            places[f"environment:{variable} in {name}"] = common(value)
    return places
