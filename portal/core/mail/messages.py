"""What users can be told by e-mail, and the words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from portal.core.jobs.job import Job
from portal.core.session.end_reasons import FINDING_OUT, unexpected
from portal.core.session.session import OVER, Session, State
from portal.errors import visible

SOON = timedelta(minutes=15)
WAITED = timedelta(minutes=1)
"""Nobody needs a message about a session that started while they were looking."""
MOST_LINES = 20
"""Messages that are named in one that joins many."""


class Occasion(StrEnum):
    """What a user can be told about."""

    STARTED = "started"
    ENDS_SOON = "ends_soon"
    ENDED = "ended"
    JOB_ENDED = "job_ended"


TITLES = {
    Occasion.STARTED: "A session starts that has waited for over a minute",
    Occasion.ENDS_SOON: "A session ends in 15 minutes",
    Occasion.ENDED: "A session ends without your doing",
    Occasion.JOB_ENDED: "A batch job has ended; of an array, when all of its tasks have",
}
"""In the form where users choose."""


@dataclass(frozen=True)
class Message:
    """A message to one user; `about` and `occasion` identify it, so that it is sent once."""

    person: str
    occasion: Occasion
    about: str
    subject: str
    text: str


def session_messages(session: Session, now: datetime, url: str) -> Iterator[Message]:
    """All messages that a session's state gives rise to; `url`: the portal's own address."""
    about = f"session {session.id} {session.restarts}"
    page = f"{url}/sessions/{session.id}"
    waited = session.ready and session.ready - session.submitted > WAITED
    if waited and session.state is State.RUNNING:
        text = f"It runs on {session.node}." if session.node else "It runs."
        yield _message(session, Occasion.STARTED, about, "has started", f"{text}\n{page}")
    if session.state is State.RUNNING and session.deadline and session.deadline - now <= SOON:
        ends = f"{session.deadline:%Y-%m-%d %H:%M} UTC"
        # Its deadline is in the key: after an extension there is another warning.
        key = f"{about} {session.deadline:%Y-%m-%d %H:%M}"
        text = f"It ends at {ends}, and running programs are stopped.\nExtend it: {page}"
        yield _message(session, Occasion.ENDS_SOON, key, f"ends at {ends}", text)
    explained = session.end_text and session.end_text != FINDING_OUT
    if session.state in OVER and explained and unexpected(session):
        text = f"{session.end_text}\nLaunch it again: {url}/sessions/new?from={session.id}"
        yield _message(session, Occasion.ENDED, about, "has ended", text)


def _message(session: Session, occasion: Occasion, about: str, what: str, text: str) -> Message:
    return Message(session.owner, occasion, about, f"{session.name} {what}", text)


def job_messages(
    jobs: Collection[Job], live_arrays: Collection[str], texts: dict[str, str], url: str
) -> Iterator[Message]:
    """Messages about jobs that have ended; one for an array, once none of its tasks is live.

    `texts`: how each ended, by record.
    """
    arrays: dict[str, list[Job]] = {}
    for job in jobs:
        if job.session:
            continue
        if job.array_id:
            arrays.setdefault(job.array_id, []).append(job)
            continue
        name = visible(job.texts.name) or "Job"
        subject = f"{name} ({job.shown_id}) has ended"
        text = f"{texts[job.id]}\n{url}/jobs/{job.shown_id}"
        yield Message(job.report.user, Occasion.JOB_ENDED, f"job {job.id}", subject, text)
    for array, tasks in arrays.items():
        if array not in live_arrays:
            yield _array_message(array, tasks, url)


def _array_message(array: str, tasks: Sequence[Job], url: str) -> Message:
    name = visible(tasks[0].texts.name) or "Array"
    text = f"None of its tasks is left.\n{url}/jobs?array={array}&state=ended"
    subject = f"{name} ({array}) has ended: all tasks"
    return Message(tasks[0].report.user, Occasion.JOB_ENDED, f"array {array}", subject, text)


@dataclass(frozen=True)
class Mail:
    """What is sent at once to a user."""

    person: str
    subject: str
    text: str


def joined(messages: Sequence[Message], omitted: int = 0) -> Mail:
    """One mail for several messages of the same user; `omitted`: those that were not kept."""
    first = messages[0]
    if len(messages) == 1 and not omitted:
        return Mail(first.person, first.subject, first.text)
    count = len(messages) + omitted
    lines = [f"- {message.subject}" for message in messages[:MOST_LINES]]
    if count > len(lines):
        lines.append(f"- and {count - len(lines)} more")
    return Mail(first.person, f"{count} messages about your sessions and jobs", "\n".join(lines))
