"""`slipway sbatch` on the login node, run as the user.

The user's words reach the shell on the login node as positional parameters only, which it never
parses. `slipway as-login` gives sbatch the environment that a person's own shell has. sbatch's
answer follows a fixed line, so that nothing printed before is taken for it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from portal.adapters.slurm.asking import DOWN
from portal.adapters.slurm.commands import is_job_id
from portal.adapters.ssh.shell.home import ENTER, check_home
from portal.adapters.ssh.transport import Completed, Transport
from portal.core.cluster.jobs import plausible_start
from portal.core.interfaces.jobs import Submitter
from portal.core.jobs.compose.command import SubmitCommand
from portal.core.jobs.compose.refusals import ScriptTooLong, ScriptUnreadable, SubmissionRefused
from portal.core.jobs.compose.submission import MAX_SCRIPT
from portal.errors import OutcomeUnknown, Unavailable

BEGIN = b"slipway-sbatch-begins"
NO_FOLDER, NO_DIRECTORY = 92, 93
"""Exit codes, of use only without BEGIN: later they are sbatch's."""
MISSING, NO_FILE, NOT_READABLE, TOO_LONG = 3, 4, 5, 6
_READ_SECONDS = 10
_MOST_STORED = 8 << 20
"""Bytes; Slurm takes scripts of 4 MB by default."""
_LOGIN_SECONDS = 10
"""How long the login shell's start-up files may take (batch/login_shell.py)."""
_KILLED = (124, 137)
"""Exit codes of timeout(1)."""
_CANNOT_RUN = (126, 127)

_PATH = 'case $1 in "~") set -- "$HOME" ;; "~/"*) set -- "$HOME/${1#"~/"}" ;; esac'
# Variables have names that nobody exports: an exported one would reach the job with our value.
_RUN = f"""\
place() {{ {_PATH}; slipway_place=$1; }}
{ENTER}
place "$1" && cd -- "$slipway_place" || exit {NO_FOLDER}
slipway_chdir=
if [ -n "$2" ]; then
    place "$2" && [ -d "$slipway_place" ] && [ -x "$slipway_place" ] || exit {NO_DIRECTORY}
    slipway_chdir=--chdir=$slipway_place
fi
slipway_seconds=$3 slipway_program=$4 slipway_how=$5
shift 5
# Times in messages are in UTC. A submission keeps the user's environment: jobs inherit it.
slipway_clock=
[ "$slipway_how" != --test-only ] || slipway_clock=TZ=UTC
printf '\\n%s\\n' {BEGIN.decode()}
exec "$slipway_program" as-login env $slipway_clock \\
    timeout --kill-after=2 "$slipway_seconds" "$slipway_program" sbatch "$slipway_how" \\
    ${{slipway_chdir:+"$slipway_chdir"}} "$@"
"""
_READ = f"""\
{_PATH}
[ -e "$1" ] || exit {MISSING}
[ -f "$1" ] || exit {NO_FILE}
[ -r "$1" ] || exit {NOT_READABLE}
size=$(stat -L --format=%s -- "$1") || exit 1
[ "$size" -le {MAX_SCRIPT} ] || exit {TOO_LONG}
exec dd if="$1" iflag=nonblock,count_bytes,fullblock bs=64K count={MAX_SCRIPT + 1} status=none
"""
_WHY = {
    MISSING: "there is no such file, or you may not look into its folder",
    NO_FILE: "this is not a file",
    NOT_READABLE: "you may not read this file",
}


class LoginNodeSubmitter(Submitter):
    """Submitter over SSH commands."""

    def __init__(self, transport: Transport, program: str, seconds: float) -> None:
        self._transport = transport
        self._program = program
        self._seconds = seconds

    def submit(self, user: str, command: SubmitCommand) -> str:
        done, answer = self._run(user, command, "--parsable")
        lost = done.code in _KILLED or (done.code != 0 and _answer_lost(done.stderr))
        if lost and answer is not None:
            raise OutcomeUnknown(
                "Slurm took too long to accept the job. It may have been submitted all the same: "
                "look at your jobs before you submit it again."
            )
        _check(done, answer)
        number = _number(answer or "")
        if not number:
            raise OutcomeUnknown(
                "sbatch reported success, but no number of a job. Look at your jobs before you "
                "submit it again."
            )
        return number

    def check(self, user: str, command: SubmitCommand) -> str:
        done, answer = self._run(user, command, "--test-only")
        if done.code in _KILLED:
            raise Unavailable("Slurm took too long to check the job. Try again in a moment.")
        _check(done, answer)
        return _words(done.stderr)

    def _run(self, user: str, command: SubmitCommand, how: str) -> tuple[Completed, str | None]:
        """Run sbatch; its output is None if it was not started."""
        places = (command.folder, command.directory, f"{self._seconds:.0f}")
        words = (*places, self._program, how, *command.words)
        argv = ["/bin/sh", "-c", _RUN, "sh", *words]
        script = (command.script or "").encode()
        done = self._transport.run(user, argv, script, self._seconds + 5 + _LOGIN_SECONDS)
        before, mark, answer = done.stdout.rpartition(b"\n%s\n" % BEGIN)
        del before
        return done, answer.decode(errors="replace") if mark else None

    def read_script(self, user: str, path: str) -> bytes:
        limited = ["env", "LC_ALL=C", "timeout", "--kill-after=1", str(_READ_SECONDS)]
        argv = [*limited, "/bin/sh", "-c", _READ, "sh", path]
        most = MAX_SCRIPT + 4096
        done = self._transport.run(user, argv, seconds=_READ_SECONDS + 5, most=most)
        if done.code == TOO_LONG or len(done.stdout) > MAX_SCRIPT:
            raise ScriptTooLong(f"this file has more than {MAX_SCRIPT >> 10} KB")
        if done.code in _WHY:
            raise ScriptUnreadable(_WHY[done.code])
        if done.code != 0:
            raise Unavailable(f"The script cannot be read right now: {done.error_text()}")
        return done.stdout

    def stored_script(self, user: str, job_id: str) -> bytes:
        if not is_job_id(job_id):
            raise ValueError(f"invalid job id: {job_id}")
        limited = ["env", "LC_ALL=C", "timeout", "--kill-after=1", str(_READ_SECONDS)]
        argv = [*limited, "scontrol", "write", "batch_script", job_id, "-"]
        done = self._transport.run(user, argv, seconds=_READ_SECONDS + 5, most=_MOST_STORED)
        begin = done.stdout.find(b"#!")  # after what the shell on the login node has printed
        if done.code != 0 or begin < 0:
            raise ScriptUnreadable(done.error_text() or "Slurm does not have this script")
        return done.stdout[begin:]


# sbatch's words when the request was sent and no answer came: Slurm may have accepted the job.
_SENT = (
    "Socket timed out",
    "Zero Bytes were transmitted",
    "Transport endpoint is not connected",
)


def _answer_lost(errors: str) -> bool:
    return any(word in errors for word in _SENT)


def _check(done: Completed, answer: str | None) -> None:
    """Raise the error for a command that failed."""
    if answer is None:
        check_home(done)
        _check_places(done)
    if done.code == 0:
        return
    if done.code in _CANNOT_RUN:
        raise Unavailable(
            f"Jobs cannot be submitted from here: {done.error_text()}. Tell the administrators."
        )
    if any(word in done.stderr for word in DOWN):
        raise Unavailable(
            "Slurm does not answer, so nothing can be submitted right now. Try again in a few "
            "minutes."
        )
    raise SubmissionRefused(done.stderr)


def _check_places(done: Completed) -> None:
    wrong = {NO_FOLDER: "path", NO_DIRECTORY: "directory"}.get(done.code)
    if wrong is None:
        raise Unavailable(f"The job was not submitted: {done.error_text()}")
    raise SubmissionRefused("there is no such folder, or you may not enter it", wrong)


def _number(answer: str) -> str:
    """The job's number in the output of sbatch --parsable, as "123" or "123;cluster".

    A site's wrapper may print lines around it: it is the last line, or the only one of its form.
    """
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    found = [match[1] for line in lines if (match := _NUMBER.fullmatch(line))]
    is_last = bool(found) and _NUMBER.fullmatch(lines[-1]) is not None
    return found[-1] if is_last or len(found) == 1 else ""


_NUMBER = re.compile(r"([0-9]{1,10})(;[A-Za-z0-9_.-]+)?", re.ASCII)


def _words(messages: str) -> str:
    """What sbatch --test-only said, for reading: without its name and the number of a job that
    does not exist, times marked as UTC."""
    lines = [re.sub(r"^sbatch: (error: )?", "", line) for line in messages.splitlines()]
    text = "\n".join(line for line in lines if line.strip())
    text = re.sub(r"\bJob [0-9]+ to start at\b", "It would start at", text)
    text = re.sub(r"\bstart at ([0-9]{9,11})(\.[0-9]+)?\b", _as_date, text)
    text = re.sub(r"(\bstart at [0-9-]{10}T[0-9:]{8})(?! UTC)", r"\1 UTC", text)
    return re.sub(r"\bstart at ([0-9-]{10}T[0-9:]{8}) UTC", _within_a_year, text)


def _within_a_year(found: re.Match[str]) -> str:
    """The same words, unless the start that they tell is too far away to mean anything."""
    try:
        start = plausible_start(datetime.fromisoformat(f"{found[1]}+00:00"), datetime.now(UTC))
    except ValueError:  # a site's words may look like a time
        return found[0]
    return found[0] if start else "not start within a year"


def _as_date(found: re.Match[str]) -> str:
    """A site's own SLURM_TIME_FORMAT may be seconds."""
    return f"start at {datetime.fromtimestamp(int(found[1]), UTC):%Y-%m-%dT%H:%M:%S} UTC"
