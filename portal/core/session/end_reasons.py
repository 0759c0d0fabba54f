"""Explanations of a session's end for its owner, partly from the session's log."""

from __future__ import annotations

import re
from datetime import timedelta

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.session.session import NEVER_CALLED, UNUSED, Cause, Session, State
from portal.core.units import exact_size
from portal.errors import clip, visible

LOG_LINES = 50
LOG_BYTES = 16 * 1024
SCRIPT_FAILED = 70
"""Exit code of the batch script after logging an error; if none is logged, it could not write."""
LEEWAY = timedelta(seconds=2)
"""Tolerated difference between Slurm's clock and the portal's."""
CANCELLED_BY_UNKNOWN = "Cancelled with Slurm's own commands."
"""Only accounting records who cancelled a job, and its record may arrive later."""
_FAILED_TO_START = "The session did not start"
FINDING_OUT = f"{_FAILED_TO_START}; finding out why…"
"""Shown until the log has been read."""


def explain_end(session: Session, report: JobReport) -> tuple[Cause, str]:
    """The cause of a session's end, and its explanation for the owner."""
    if _was_stopped(session, report):
        if session.stopped_by == NEVER_CALLED:
            return Cause.START_FAILED, f"{_FAILED_TO_START}: nothing in it called back. {_TELL}"
        if session.stopped_by == UNUSED:
            return Cause.IDLE, _unused(session)
        by, why = _with_role(session.stopped_by or "", session), session.stop_reason
        return Cause.CANCELLED, f"Ended by {by}: {why.rstrip('.')}." if why else f"Ended by {by}."
    if report.state is JobState.CANCELLED:
        return Cause.CANCELLED, _cancelled(session, report)
    if report.state in _SLURMS_DOING:
        cause, text = _SLURMS_DOING[report.state]
        node = session.node or next(iter(report.nodes), "")
        return cause, text.format(memory=exact_size(session.memory_mb), node=node)
    if session.ready is None:
        # Its log has to be read first (services/session/housekeeping.py).
        return Cause.START_FAILED, FINDING_OUT
    if report.state is JobState.COMPLETED:
        return Cause.FINISHED, "The session ended by itself."
    return Cause.FAILED, f"The session failed (exit code {report.exit_code}). Its log may say why."


_TIME_UP = (
    Cause.TIME_LIMIT,
    "The time limit was reached. Launch it again with a longer one if it was too short.",
)
_SLURMS_DOING = {
    JobState.TIMEOUT: _TIME_UP,
    JobState.DEADLINE: _TIME_UP,
    JobState.OUT_OF_MEMORY: (
        Cause.OUT_OF_MEMORY,
        "The session needed more memory than the {memory} that it asked for; its shared memory "
        "counts, too. Launch it again with more.",
    ),
    JobState.NODE_FAIL: (
        Cause.NODE_FAILURE,
        "The compute node {node} failed. Launch the session again.",
    ),
    JobState.BOOT_FAIL: (
        Cause.NODE_FAILURE,
        "The compute node could not be switched on. Launch the session again.",
    ),
    JobState.PREEMPTED: (
        Cause.PREEMPTED,
        "A job of higher priority needed the place. Launch the session again.",
    ),
}


def _unused(session: Session) -> str:
    since = f" since {session.last_used:%Y-%m-%d %H:%M} UTC" if session.last_used else ""
    return f"Ended by Slipway: nobody had used it{since}. Launch it again to go on."


def _was_stopped(session: Session, report: JobReport) -> bool:
    """Whether the portal ended it on request, and no other cause came first.

    Slurm keeps the first cause: a job at its time limit that is cancelled while it ends is a
    TIMEOUT.
    """
    requested = session.stop_requested
    if requested is None or report.state in _SLURMS_DOING:
        return False
    if report.state is JobState.CANCELLED or report.end is None:
        return True
    return report.end >= requested - LEEWAY


def _cancelled(session: Session, report: JobReport) -> str:
    user = report.cancelled_by
    if user is None:
        return CANCELLED_BY_UNKNOWN
    return f"Cancelled by {_with_role(user, session)} with Slurm's own commands."


def _with_role(name: str, session: Session) -> str:
    # Only the owner and administrators can cancel; "Slipway, since …" is shown unchanged.
    if name == session.owner or name.startswith("Slipway,"):
        return name
    return f"{name} (an administrator)"


def ended_by_owner(session: Session, report: JobReport, cause: Cause) -> bool:
    """Whether its owner requested this end, here or with Slurm's commands."""
    return cause is Cause.CANCELLED and session.owner in (session.stopped_by, report.cancelled_by)


def unexpected(session: Session) -> bool:
    """Whether a session's end may surprise its owner, who is then notified."""
    return session.stop_requested is None or session.stopped_by != session.owner


def needs_log(session: Session) -> bool:
    """Whether the explanation of its end includes the last lines of its log."""
    explained = session.state is State.FAILED or session.cause is Cause.IDLE
    return explained and session.job_id is not None


# Messages in the log

# In front of the runner's lines; those of sessions that began before an update have no date.
_TIME = r"(?:(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\dZ? )?"
_MESSAGE = re.compile(
    _TIME + r"(?:Slipway|The session cannot be opened|The runner cannot start): (?P<reason>.+)"
)
# The SPANK plug-in's message in the log (slurm_plugins/spank_slipway.c).
_UNFENCED = re.compile(
    r"slurmstepd\S*: error: This job's share of a GPU cannot be fenced.*?: (?P<reason>.+)"
    r"\. Please tell the administrators\."
)
_FATAL = re.compile(r"FATAL: +(?P<reason>.+)")
_REFUSED = re.compile(_TIME + r"The portal does not know this session \(any more\)")
# Terminal and text direction controls, except for tab and line feed.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")

LOG_SAYS = "Its log says: "
"""Prefix of a `progress` that was read from the log of a session that is slow to start."""
_MAX_LAST_LINE = 200
NO_PORTAL = "the portal could not be reached"
"""Prefix of the runner's last message if it gives up (node/runner/callback.py)."""

_AGAIN = "Launch it again; if that does not help, tell the administrators."
_TELL = "Tell the administrators."


def tail(data: bytes) -> str:
    """The last lines of a log as stored and shown: bounded, without control characters."""
    text = data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROL.sub("", _ESCAPES.sub("", text))
    lines = text.rstrip().split("\n")[-LOG_LINES:]
    encoded = "\n".join(lines).encode()[-LOG_BYTES:]
    return encoded.decode(errors="ignore")


def last_line(data: bytes) -> str:
    """The last line of a log, for a session that is slow to start; "" if there is none yet."""
    lines = [line.strip() for line in tail(data).split("\n")]
    last = next(filter(None, reversed(lines)), "")
    message = visible(re.sub(f"^{_TIME}", "", last))
    return clip(LOG_SAYS + message, _MAX_LAST_LINE) if message else ""


def start_failure(exit_code: int | None, log: str) -> str:
    """Why a session did not start, according to its log and exit code."""
    lines = log.split("\n")
    for line in reversed(lines):
        if (message := _MESSAGE.fullmatch(line.strip())) is not None:
            reason = message["reason"].strip()
            advice = f" {_AGAIN}" if reason.startswith(NO_PORTAL) else ""
            return f"{_FAILED_TO_START}: {reason}{'' if reason.endswith('.') else '.'}{advice}"
    for line in lines:
        if (unfenced := _UNFENCED.fullmatch(line.strip())) is not None:
            why = f"this node gave it no share of its GPU ({unfenced['reason']})"
            return f"{_FAILED_TO_START}: {why}. {_TELL}"
    for line in reversed(lines):
        if (fatal := _FATAL.search(line)) is not None:
            # Apptainer's messages give the context first and the error last.
            why = fatal["reason"].strip().rstrip(".").rpartition(": ")[2]
            return f"{_FAILED_TO_START}: Apptainer could not open its environment ({why}). {_TELL}"
    if any(_REFUSED.fullmatch(line.strip()) for line in lines):
        return f"{_FAILED_TO_START}: the portal did not accept its call. {_AGAIN}"
    if exit_code == SCRIPT_FAILED:
        return f"{_FAILED_TO_START}: it could not write into your home, which may be full. {_AGAIN}"
    if exit_code:
        return f"{_FAILED_TO_START}: its script ended with exit code {exit_code}. {_AGAIN}"
    return f"{_FAILED_TO_START}: it ended before it was ready. {_AGAIN}"


# Messages of runners about apps

_APP_ENDED = re.compile(r".* ended before it answered \((?P<how>.*)\)")
_APP_STOPPED = re.compile(r".* ended \((?P<how>.*)\)")
_APP_LATE = re.compile(r".* did not answer within (?P<late>[^\s:]+ seconds(?:: .+)?)")


def app_trouble(title: str, message: str) -> str:
    """Describe to the user why an app did not start or has stopped."""
    if (match := _APP_ENDED.fullmatch(message)) is not None:
        return f"{title} did not start: it ended with {match['how']}."
    if (match := _APP_LATE.fullmatch(message)) is not None:
        return f"{title} did not start: it did not answer within {match['late']}."
    if (match := _APP_STOPPED.fullmatch(message)) is not None:
        return f"{title} has stopped: it ended with {match['how']}."
    return f"{title} did not start{': ' + message.rstrip('.') if message else ''}."
