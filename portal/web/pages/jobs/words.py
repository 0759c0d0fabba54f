"""The words of the actions on jobs, for buttons, dialogs and their results."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Flask

from portal.core.jobs.actions import JobAction


@dataclass(frozen=True)
class ActionWords:
    """The words for an action and its effect."""

    verb: str
    past: str
    icon: str
    effect: str
    """The effect on one job."""
    effect_on_many: str


WORDS = {
    JobAction.HOLD: ActionWords(
        "Hold", "held", "pause-fill",
        "It stays in the queue and does not start until it is released.",
        "They stay in the queue and do not start until they are released. Running tasks of arrays"
        " go on.",
    ),
    JobAction.RELEASE: ActionWords(
        "Release", "released", "play-fill",
        "It takes its turn in the queue again.",
        "They take their turns in the queue again.",
    ),
    JobAction.REQUEUE: ActionWords(
        "Requeue", "queued again", "arrow-counterclockwise",
        "It stops at once, waits in the queue, and runs again from its beginning. Output that it"
        " has written may be overwritten.",
        "They stop at once, wait in the queue, and run again from their beginning. Output that"
        " they have written may be overwritten.",
    ),
    JobAction.CANCEL: ActionWords(
        "Cancel", "cancelled", "x-octagon",
        "It stops at once, or never starts. Files that it has written stay.",
        "They stop at once, or never start. Files that they have written stay.",
    ),
}  # fmt: skip
"""In the order of the buttons."""


def job_label(name: str, number: str) -> str:
    """Name and number of a job, since names are not unique."""
    return f"{name} ({number})" if name else f"job {number}"


def dialog_label(label: str, owner: str, reader: str, *, array: bool) -> str:
    """The label of a job or array in dialogs: with another owner's name, and "all of its tasks"."""
    whose = "" if owner == reader else f"{owner}'s "
    return f"{whose}{label}{', all of its tasks' if array else ''}"


def install(app: Flask) -> None:
    """Make the words available to the templates."""
    app.jinja_env.globals.update(action_words=WORDS)
