"""Slurm's reasons for waiting, in plain words, for sessions and for other jobs.

Names of limits follow a grammar (Slurm's job_reasons.c): where it is set, Grp, Max or Min, the
resource, the time unit, the scope. Everything else is a table. All reasons of Slurm 22.05 to 26.05,
listed in tests/recorded/pending_reasons.json, are covered.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Reason:
    """Why a session or a job waits: Slurm's code, what it means, what its owner can do."""

    code: str
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Wording:
    """The words for what waits."""

    one: str
    several: str
    end: str
    """How to end one, as in "End one of your sessions"."""
    again: str
    """How to request it again."""
    group: str
    """What its pages call a partition."""


SESSIONS = Wording("session", "sessions", "End", "launch it again", "resource group")
JOBS = Wording("job", "jobs", "Cancel", "submit it again", "partition")

WAIT = "It starts by itself when there is room."
_SECONDS = "This takes seconds."
_END_ONE = "{end} one of your {several}, or {again} with less."
_LESS = "{end} it and {again} with less."
_MORE = "{end} it and {again} with more."
_SHORTER = "{end} it and {again} with a shorter time limit."
_ELSEWHERE = "{end} it and {again} in another {group}."
_ASK = "Ask the administrators."
_TELL = "If it lasts, tell the administrators."
_AGAIN = "{end} it and {again}."

_KNOWN: dict[str, tuple[str, str]] = {
    # The ordinary way through the queue.
    "None": ("Slurm is looking for a place.", ""),
    "Priority": ("Others are ahead in the queue.", "A shorter time limit can help."),
    "Resources": ("It is next; all suitable nodes are busy.", WAIT),
    "BeginTime": ("It is planned for later.", ""),
    "Prolog": ("The node is being prepared.", _SECONDS),
    "Cleaning": ("The node is tidying up after an earlier run.", _SECONDS),
    "SchedDefer": ("Slurm takes it up in its next round.", _SECONDS),
    "Dependency": ("It waits for another job to end.", ""),
    "JobArrayTaskLimit": ("As many of its kind run as may run at once.", WAIT),
    "FedJobLock": ("Another cluster of the federation is looking at it.", _SECONDS),
    "Reservation": ("It waits for its reservation to begin.", ""),
    # Things that are short at the moment.
    "Licenses": ("All licences it needs are in use.", WAIT),
    "BurstBufferResources": ("The fast storage it needs is in use.", WAIT),
    "BurstBufferStageIn": ("Its data are being copied to fast storage.", ""),
    "BurstBufferOperation": ("The fast storage reported a problem.", _TELL),
    "MaxPoweredUpNodes": ("As many nodes are switched on as may be.", WAIT),
    "MpiPortsBusy": ("The network ports it needs are in use.", WAIT),
    "NvidiaImexChannels": ("The links between GPUs that it needs are in use.", WAIT),
    "PowerNotAvail": ("There is not enough electric power for it now.", WAIT),
    "PowerReserved": ("The electric power is reserved for others now.", WAIT),
    # Not a reason of Slurm's: a running job that was suspended.
    "Suspended": ("It is paused, and nothing in it moves.", "It goes on when Slurm lets it."),
    # The site's doing.
    "ReqNodeNotAvail": ("The nodes that could run it are not available.", WAIT),
    "NodeDown": ("The nodes that could run it are down.", _TELL),
    "FrontEndDown": ("The node that starts jobs is down.", _TELL),
    "PartitionDown": ("This {group} is closed for new {several}.", _ELSEWHERE),
    "PartitionInactive": ("This {group} is switched off.", _ELSEWHERE),
    "Constraints": ("No node with the wanted features is available now.", WAIT),
    "BlockMaxError": ("The machine refuses it after repeated errors.", _TELL),
    "BlockFreeAction": ("The machine is setting nodes free.", WAIT),
    # On hold.
    "JobHeldUser": ("Its owner holds it.", "Release it, and it takes its turn."),
    "JobHeldAdmin": ("An administrator holds it.", _ASK),
    "JobHoldMaxRequeue": ("It failed to start too often and is on hold.", _AGAIN),
    # Never as it stands.
    "AccountNotAllowed": ("Your account may not use this {group}.", _ELSEWHERE),
    "InvalidAccount": ("Slurm does not know your account any more.", _ASK),
    "InvalidQOS": ("Slurm does not know its quality of service any more.", _ASK),
    "QOSNotAllowed": ("Your quality of service may not be used here.", _ELSEWHERE),
    "PartitionTimeLimit": ("It asks for more time than this {group} allows.", _SHORTER),
    "PartitionNodeLimit": ("It asks for more than this {group} allows.", _LESS),
    "PartitionConfig": ("It does not fit this {group}.", _ELSEWHERE),
    "MaxMemPerLimit": ("It asks for more memory than one {one} may have here.", _LESS),
    "BadConstraints": ("No node could ever run it as it was asked for.", _LESS),
    "DeadLine": ("It cannot end before its deadline any more.", _AGAIN),
    "DependencyNeverSatisfied": ("The job it waits for can never end as it must.", _AGAIN),
    "ReservationDeleted": ("Its reservation is gone.", _AGAIN),
    "ReservationInvalid": ("It may not use its reservation.", _ASK),
    # Limits by older, coarser names.
    "AccountingPolicy": ("You or your group are using all that you may use at once.", _END_ONE),
    "AssociationJobLimit": ("You have as many jobs as you may have at once.", _END_ONE),
    "AssociationResourceLimit": ("You are using all that you may use at once.", _END_ONE),
    "AssociationTimeLimit": ("Your budget of computing time is used up.", _ASK),
    "QOSJobLimit": ("You have as many jobs as you may have at once.", _END_ONE),
    "QOSResourceLimit": ("You are using all that you may use at once.", _END_ONE),
    "QOSTimeLimit": ("Your budget of computing time is used up.", _ASK),
    "QOSUsageThreshold": ("You have used too much lately for this quality of service.", _ASK),
    # What is left of an earlier try.
    "InactiveLimit": ("An earlier try was given up because nothing happened.", _AGAIN),
    "JobLaunchFailure": ("An earlier try could not be started.", _TELL),
    "NonZeroExitCode": ("An earlier try ended with an error.", _AGAIN),
    "OutOfMemory": ("An earlier try ran out of memory.", _MORE),
    "RaisedSignal": ("An earlier try was ended by a signal.", _AGAIN),
    "SystemFailure": ("An earlier try met a fault of the system.", _TELL),
    "TimeLimit": ("An earlier try reached its time limit.", _AGAIN),
    "InvalidReason": ("Slurm does not say why.", _TELL),
    "InvaildReason": ("Slurm does not say why.", _TELL),  # spelt so in some versions
}

_LIMIT = re.compile(
    r"(?P<by>Assoc|QOS)?(?P<kind>Grp|Max|Min)"
    r"(?P<of>BB|Billing|Cpu|CPU|Energy|GRES|SubmitJobs?|Jobs|Licenses?|Memory|Mem|Node|Unknown"
    r"|WallDuration|Wall)"
    r"(?P<time>RunMinutes|RunMins|Minutes)?(?P<per>PerJob|PerNode|PerUser|PerAccount)?"
    r"(?:Limit|NotSatisfied)?"
)
_NOUNS = {
    "BB": "fast storage",
    "Billing": "billing units",
    "Cpu": "CPU cores",
    "CPU": "CPU cores",
    "Energy": "energy",
    "GRES": "GPUs",
    "Jobs": "running jobs",
    "SubmitJob": "running and waiting jobs",
    "SubmitJobs": "running and waiting jobs",
    "License": "licences",
    "Licenses": "licences",
    "Memory": "memory",
    "Mem": "memory",
    "Node": "nodes",
    "Unknown": "resources",
    "Wall": "run time",
    "WallDuration": "run time",
}


def explain_reason(code: str | None, wording: Wording = SESSIONS) -> Reason:
    """Explain Slurm's reason code; an unknown one is shown unchanged."""
    # squeue may append free text to the code: "ReqNodeNotAvail, UnavailableNodes:n1".
    word = (code or "None").split(",")[0].split("(")[0].strip() or "None"
    limit = _LIMIT.fullmatch(word)
    if word in _KNOWN:
        text, advice = _KNOWN[word]
    elif limit is not None:
        text, advice = _limit_words(**limit.groupdict())
    else:
        return Reason(word, f"Slurm says: {word}.")
    words = asdict(wording)
    return Reason(word, text.format(**words), advice.format(**words))


_RESOURCES = {
    **dict.fromkeys(("Cpu", "CPU"), "cpus"),
    **dict.fromkeys(("Memory", "Mem"), "memory_mb"),
    "GRES": "fgpu",
}


def limited_resource(code: str | None) -> str:
    """The resource of which several jobs together reached a limit; "" for other reasons.

    "cpus", "memory_mb" or "fgpu".
    """
    limit = _LIMIT.fullmatch((code or "").split(",")[0].strip())
    if limit is None or limit["kind"] == "Min" or limit["time"]:
        return ""
    return "" if limit["per"] in ("PerJob", "PerNode") else _RESOURCES.get(limit["of"], "")


def _limit_words(
    by: str | None, kind: str, of: str, time: str | None, per: str | None
) -> tuple[str, str]:
    noun = _NOUNS[of]
    if kind == "Min":
        return f"It asks for less {noun} than a {{one}} must have here.", _MORE
    if per in ("PerJob", "PerNode"):
        counted = f"{noun} for so long" if time else noun
        shorter = time or of.startswith("Wall")
        return (
            f"It asks for more {counted} than one {{one}} may have.",
            _SHORTER if shorter else _LESS,
        )
    yours = per == "PerUser" or (by == "Assoc" and kind == "Max" and per is None)
    whose = "Your" if yours else "Your group's"
    reached = "You have reached your" if yours else "Your group has reached its"
    if time == "Minutes":
        return f"{whose} budget of {noun} over time is used up.", _ASK
    if time:
        return f"{reached} limit of {noun} times time limit.", "A shorter time limit can help."
    return f"{reached} limit of {noun} at once.", _END_ONE if yours else WAIT
