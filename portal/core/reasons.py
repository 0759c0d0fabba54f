"""Slurm's reasons for waiting, in plain words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Why a session waits: Slurm's code, what it means, what its owner can do."""

    code: str
    text: str
    advice: str = ""


_END_ONE = "End one of your sessions, or ask for less."
_WAIT = "It starts by itself when there is room."

_KNOWN = {
    "None": ("Slurm is looking for a place.", ""),
    "Priority": ("Other jobs are ahead in the queue.", "A shorter time limit can help."),
    "Resources": ("All suitable nodes are busy.", _WAIT),
    "BeginTime": ("It is planned for later.", ""),
    "Prolog": ("The node is being prepared.", ""),
    "JobHeldUser": ("The job is on hold by its owner.", "Release it with scontrol release."),
    "JobHeldAdmin": ("An administrator put the job on hold.", "Ask the administrators."),
    "PartitionDown": ("This resource group is closed.", "Choose another, or ask when it opens."),
    "PartitionInactive": ("This resource group is closed.", "Choose another."),
    "PartitionTimeLimit": ("The time limit is longer than allowed.", "Ask for less time."),
    "ReqNodeNotAvail": ("The nodes that could run it are not available.", _WAIT),
    "NodeDown": ("The nodes that could run it are down.", "The administrators know."),
}


def explain(code: str | None) -> Reason:
    """Put Slurm's reason code into words; one that is not known is shown as it is."""
    # %r may carry free text behind the code: "ReqNodeNotAvail, UnavailableNodes:n1".
    word = (code or "None").split(",")[0].split("(")[0].strip() or "None"
    if word in _KNOWN:
        return Reason(word, *_KNOWN[word])
    if word.startswith(("QOSMax", "AssocMax")) and "PerUser" in word:
        return Reason(word, "You are using all that you may use at once.", _END_ONE)
    if word.startswith(("QOSGrp", "AssocGrp")):
        return Reason(word, "Your group is using all that it may use at once.", _WAIT)
    if word.startswith(("QOSMax", "QOSMin", "AssocMax", "AssocMin")):
        return Reason(word, "It asks for more than your account may have.", "Ask for less.")
    return Reason(word, f"Slurm says: {word}.")
