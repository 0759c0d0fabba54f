"""Explanations of Slurm's reasons for waiting, for sessions and other jobs.

Names of limits follow a grammar (Slurm's job_reasons.c): association or QOS; Grp, Max or Min; the
resource; the time unit; the scope. Everything else is a table. All reasons of Slurm 22.05 to 26.05,
listed in tests/recorded/pending_reasons.json, are covered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from portal.core.cluster.choice.charge import UNKNOWN_CHARGE, Charge


@dataclass(frozen=True)
class Reason:
    """Why a session or a job waits: Slurm's code, its meaning, and advice for its owner."""

    code: str
    text: str
    advice: str = ""
    begin: datetime | None = None
    """The start time at the end of maintenance; pages show it in the reader's time zone."""


@dataclass(frozen=True)
class Wording:
    """Nouns and verbs for one kind of waiting job."""

    one: str
    several: str
    end: str
    """How to end one, as in "End one of your sessions"."""
    again: str
    """How to request it again."""
    group: str
    """The pages' term for a partition."""


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
_SPENT = "Nothing that counts towards it starts until Slurm forgets what was used, or an \
administrator raises it.{forgotten}{shorter}"

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
    "Reservation": ("It waits for {its_reservation}.", ""),
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
    # Caused by the site.
    "ReqNodeNotAvail": ("The nodes that could run it are not available.", WAIT),
    "NodeDown": ("The nodes that could run it are down.", _TELL),
    "FrontEndDown": ("The node that starts jobs is down.", _TELL),
    "PartitionDown": ("This {group} is closed for new {several}.", _ELSEWHERE),
    "PartitionInactive": ("This {group} is switched off.", _ELSEWHERE),
    "Constraints": ("No node with the wanted features{constraint} is available now.", WAIT),
    "BlockMaxError": ("The machine refuses it after repeated errors.", _TELL),
    "BlockFreeAction": ("The machine is setting nodes free.", WAIT),
    # On hold.
    "JobHeldUser": ("Its owner holds it.", "Release it, and it takes its turn."),
    "JobHeldAdmin": ("An administrator holds it.", _ASK),
    "JobHoldMaxRequeue": ("It failed to start too often and is on hold.", _AGAIN),
    # Cannot start without a change.
    "AccountNotAllowed": ("Your account{account} may not use this {group}.", _ELSEWHERE),
    "InvalidAccount": ("Slurm does not know your account{account} any more.", _ASK),
    "InvalidQOS": ("Slurm does not let it have its quality of service{qos} any more.", _ASK),
    "QOSNotAllowed": ("Its quality of service{qos} may not be used here.", _ELSEWHERE),
    "PartitionTimeLimit": ("It asks for more time than this {group} allows.", _SHORTER),
    "PartitionNodeLimit": ("It asks for more than this {group} allows.", _LESS),
    "PartitionConfig": ("It does not fit this {group}.", _ELSEWHERE),
    "MaxMemPerLimit": ("It asks for more memory than one {one} may have here.", _LESS),
    "BadConstraints": ("No node could ever run it as it was asked for{features}.", _LESS),
    "DeadLine": ("It cannot end before its deadline any more.", _AGAIN),
    "DependencyNeverSatisfied": ("The job it waits for can never end as it must.", _AGAIN),
    "ReservationDeleted": ("Its reservation{reservation} is gone.", _AGAIN),
    "ReservationInvalid": ("It may not use its reservation{reservation}.", _ASK),
    # Limits by older, coarser names.
    "AccountingPolicy": ("You or your group are using all that you may use at once.", _END_ONE),
    "AssociationJobLimit": ("You have as many jobs as you may have at once{in_account}.", _END_ONE),
    "AssociationResourceLimit": ("You use all that you may use at once{in_account}.", _END_ONE),
    "AssociationTimeLimit": ("The budget of computing time{of_account} is used up.", _SPENT),
    "QOSJobLimit": ("You have as many jobs as you may have at once{in_qos}.", _END_ONE),
    "QOSResourceLimit": ("You use all that you may use at once{in_qos}.", _END_ONE),
    "QOSTimeLimit": ("The budget of computing time{of_qos} is used up.", _SPENT),
    "QOSUsageThreshold": ("You have used too much lately for its quality of service{qos}.", _ASK),
    # Left over from an earlier try.
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


def explain_reason(
    code: str | None, wording: Wording = SESSIONS, charge: Charge = UNKNOWN_CHARGE
) -> Reason:
    """Explain Slurm's reason code; an unknown one is shown unchanged.

    `charge` names the account and the QOS where a reason is about one.
    """
    # squeue may append free text to the code: "ReqNodeNotAvail, UnavailableNodes:n1".
    first, _, details = (code or "None").partition(",")
    word = first.split("(")[0].strip() or "None"
    limit = _LIMIT.fullmatch(word)
    if word == "ReqNodeNotAvail" and details.strip():
        text, advice = _not_available(details.strip())
    elif word in _KNOWN:
        text, advice = _KNOWN[word]
    elif limit is not None:
        text, advice = _limit_words(**limit.groupdict())
    else:
        return Reason(word, f"Slurm says: {word}.")
    words = vars(wording) | _charge_words(charge)
    return Reason(word, text.format(**words), advice.format(**words))


def maintenance_reason(begin: datetime, now: datetime) -> Reason:
    """Why a session waits that was launched during maintenance; `begin`: the end of maintenance."""
    day = "" if begin.date() == now.date() else f"{begin:%Y-%m-%d} "
    text = f"Maintenance until {day}{begin:%H:%M} UTC; it starts then."
    return Reason("Maintenance", text, begin=begin)


def limit_of(code: str) -> str:
    """The resource in a limit's name ("Cpu", "SubmitJobs"); "" if the code is not a limit."""
    limit = _LIMIT.fullmatch(code)
    return limit["of"] if limit else ""


def names_a_charge(code: str) -> bool:
    """Whether the explanation names an account, a QOS or a reservation."""
    if _LIMIT.fullmatch(code):
        return True
    return any(word in _KNOWN.get(code, ("", ""))[0] for word in _CHARGE_WORDS)


_CHARGE_WORDS = ("account}", "qos}", "reservation}")


def _not_available(details: str) -> tuple[str, str]:
    """Explain ReqNodeNotAvail with Slurm's details: the nodes, or that they are reserved."""
    if "maintenance" in details.lower():
        text = "The nodes that could run it are reserved for maintenance before it would end."
        return text, "A shorter time limit can help."
    text, advice = _KNOWN["ReqNodeNotAvail"]
    nodes = _UNAVAILABLE.fullmatch(details)
    return (f"{text[:-1]}: {nodes[1]}." if nodes else text), advice


_UNAVAILABLE = re.compile(r"UnavailableNodes:([\w.,\[\]-]{1,200})")


def _charge_words(charge: Charge) -> dict[str, str]:
    """Placeholders for account, QOS and reservation; unknown ones are empty."""
    account, qos = charge.account, charge.all_qos
    wait = "room in its" if charge.reservation_active else "its"
    begin = "" if charge.reservation_active else " to begin"
    return {
        "account": _space(account),
        "in_account": f" in account {account}" if account else "",
        "of_account": f" of account {account}" if account else "",
        "accounts": charge.accounts,
        "own_account": f"Your account {account}" if account else "Your group",
        "qos": _space(" or ".join(charge.qos)),
        "in_qos": f" with {qos}" if qos else "",
        "of_qos": f" of {qos}" if qos else "",
        "by_qos": f"{qos} has" if qos else "Your group has",
        "reservation": _space(charge.reservation),
        "its_reservation": f"{wait} reservation{_space(charge.reservation)}{begin}",
        "constraint": f" ({charge.constraint})" if charge.constraint else "",
        "features": f", with the features {charge.constraint}" if charge.constraint else "",
        "forgotten": _space(charge.resets),
        "shorter": " A shorter time limit can help." if charge.by_time_limit else "",
    }


def _space(text: str) -> str:
    return f" {text}" if text else ""


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
    """Text and advice for a limit, with placeholders for the job's account and QOS."""
    noun = _NOUNS[of]
    within = "{in_account}" if by == "Assoc" else "{in_qos}"
    if kind == "Min":
        return f"It asks for less {noun} than a {{one}} must have here{within}.", _MORE
    if per in ("PerJob", "PerNode"):
        amount = f"{noun} for so long" if time else noun
        shorter = time or of.startswith("Wall")
        return (
            f"It asks for more {amount} than one {{one}} may have{within}.",
            _SHORTER if shorter else _LESS,
        )
    yours = per == "PerUser" or (by == "Assoc" and kind == "Max" and per is None)
    has, its, within = "You have", "your", within if yours else ""
    if not yours:
        has, its, within = _jointly(by, per)
    # GrpWall is counted over time, too.
    if time == "Minutes" or (kind == "Grp" and of.startswith("Wall")):
        amount = "run time" if of.startswith("Wall") else f"{noun} over time"
        return f"{has} used up {its} budget of {amount}{within}.", _SPENT
    if time:
        text = f"{has} reached {its} limit of {noun} times time limit{within}."
        return text, "A shorter time limit can help."
    return f"{has} reached {its} limit of {noun} at once{within}.", _END_ONE if yours else WAIT


def _jointly(by: str | None, per: str | None) -> tuple[str, str, str]:
    """Words for a limit on the jobs of several users: subject, possessive, and scope."""
    if per == "PerAccount":
        return "{own_account} has", "its", "{in_qos}"
    return ("{accounts} has" if by == "Assoc" else "{by_qos}"), "its", ""
