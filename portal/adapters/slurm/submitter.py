"""`slipway sbatch` on the login node, run as the user.

The user's input reaches the shell on the login node as positional parameters only, which it never
parses. `slipway as-login` gives sbatch the environment of the user's login shell. sbatch's output
follows a fixed line, which separates it from everything printed before.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from portal.adapters.slurm.asking import DOWN
from portal.adapters.slurm.commands import is_job_id
from portal.adapters.ssh.shell.home import ENTER, check_home
from portal.adapters.ssh.transport import Completed, Transport
from portal.core.cluster.job_reports import plausible_start
from portal.core.interfaces.jobs import Submitter
from portal.core.jobs.compose.command import SubmitCommand
from portal.core.jobs.compose.refusals import ScriptTooLong, ScriptUnreadable, SubmissionRefused
from portal.core.jobs.compose.submission import MAX_SCRIPT
from portal.errors import OutcomeUnknown, Unavailable

BEGIN = b"slipway-sbatch-begins"
NO_FOLDER, NO_DIRECTORY = 92, 93
"""Exit codes, valid only without BEGIN in the output: after it they are sbatch's."""
MISSING, NO_FILE, NOT_READABLE, TOO_LONG = 3, 4, 5, 6
_READ_SECONDS = 10
_MOST_STORED = 8 << 20
"""Bytes; Slurm takes scripts of 4 MB by default."""
_LOGIN_SECONDS = 10
"""Seconds that the login shell's start-up files may take (batch/login_shell.py)."""
_KILLED = (124, 137)
"""Exit codes of timeout(1)."""
_CANNOT_RUN = (126, 127)

_PATH = 'case $1 in "~") set -- "$HOME" ;; "~/"*) set -- "$HOME/${1#"~/"}" ;; esac'
# Variables have a prefix that no environment uses: an exported one would reach the job.
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
        result, answer = self._run(user, command, "--parsable")
        lost = result.code in _KILLED or (result.code != 0 and _answer_lost(result.stderr))
        if lost and answer is not None:
            raise OutcomeUnknown(
                "Slurm took too long to accept the job. It may have been submitted all the same: "
                "look at your jobs before you submit it again."
            )
        _check(result, answer)
        number = _number(answer or "")
        if not number:
            raise OutcomeUnknown(
                "sbatch reported success, but no number of a job. Look at your jobs before you "
                "submit it again."
            )
        return number

    def check(self, user: str, command: SubmitCommand) -> str:
        result, answer = self._run(user, command, "--test-only")
        if result.code in _KILLED:
            raise Unavailable("Slurm took too long to check the job. Try again in a moment.")
        _check(result, answer)
        return _message(result.stderr)

    def _run(self, user: str, command: SubmitCommand, option: str) -> tuple[Completed, str | None]:
        """Run sbatch; its output is None if it was not started."""
        folders = (command.folder, command.directory, f"{self._seconds:.0f}")
        words = (*folders, self._program, option, *command.words)
        argv = ["/bin/sh", "-c", _RUN, "sh", *words]
        script = (command.script or "").encode()
        result = self._transport.run(user, argv, script, self._seconds + 5 + _LOGIN_SECONDS)
        _, mark, answer = result.stdout.rpartition(b"\n%s\n" % BEGIN)
        return result, answer.decode(errors="replace") if mark else None

    def read_script(self, user: str, path: str) -> bytes:
        limited = ["env", "LC_ALL=C", "timeout", "--kill-after=1", str(_READ_SECONDS)]
        argv = [*limited, "/bin/sh", "-c", _READ, "sh", path]
        most = MAX_SCRIPT + 4096
        result = self._transport.run(user, argv, seconds=_READ_SECONDS + 5, most=most)
        if result.code == TOO_LONG or len(result.stdout) > MAX_SCRIPT:
            raise ScriptTooLong(f"this file has more than {MAX_SCRIPT >> 10} KB")
        if result.code in _WHY:
            raise ScriptUnreadable(_WHY[result.code])
        if result.code != 0:
            raise Unavailable(f"The script cannot be read right now: {result.error_text()}")
        return result.stdout

    def stored_script(self, user: str, job_id: str) -> bytes:
        if not is_job_id(job_id):
            raise ValueError(f"invalid job id: {job_id}")
        limited = ["env", "LC_ALL=C", "timeout", "--kill-after=1", str(_READ_SECONDS)]
        argv = [*limited, "scontrol", "write", "batch_script", job_id, "-"]
        result = self._transport.run(user, argv, seconds=_READ_SECONDS + 5, most=_MOST_STORED)
        begin = result.stdout.find(b"#!")  # after the output of start-up files
        if result.code != 0 or begin < 0:
            raise ScriptUnreadable(result.error_text() or "Slurm does not have this script")
        return result.stdout[begin:]


# sbatch's messages if the request was sent and not answered: Slurm may have accepted the job.
_SENT = (
    "Socket timed out",
    "Zero Bytes were transmitted",
    "Transport endpoint is not connected",
)


def _answer_lost(errors: str) -> bool:
    return any(word in errors for word in _SENT)


def _check(result: Completed, answer: str | None) -> None:
    """Raise the error for a command that failed."""
    if answer is None:
        check_home(result)
        _check_folders(result)
    if result.code == 0:
        return
    if result.code in _CANNOT_RUN:
        raise Unavailable(
            f"Jobs cannot be submitted from here: {result.error_text()}. Tell the administrators."
        )
    if any(word in result.stderr for word in DOWN):
        raise Unavailable(
            "Slurm does not answer, so nothing can be submitted right now. Try again in a few "
            "minutes."
        )
    raise SubmissionRefused(result.stderr)


def _check_folders(result: Completed) -> None:
    field = {NO_FOLDER: "path", NO_DIRECTORY: "directory"}.get(result.code)
    if field is None:
        raise Unavailable(f"The job was not submitted: {result.error_text()}")
    raise SubmissionRefused("there is no such folder, or you may not enter it", field)


def _number(answer: str) -> str:
    """The job id in the output of sbatch --parsable, as "123" or "123;cluster"; "" without one.

    A site's wrapper may print further lines: the id is the last line, or the only one of its form.
    """
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    ids = [match[1] for line in lines if (match := _NUMBER.fullmatch(line))]
    is_last = bool(ids) and _NUMBER.fullmatch(lines[-1]) is not None
    return ids[-1] if is_last or len(ids) == 1 else ""


_NUMBER = re.compile(r"([0-9]{1,10})(;[A-Za-z0-9_.-]+)?", re.ASCII)


def _message(messages: str) -> str:
    """The messages of sbatch --test-only for users: without the command's name and the id of a job
    that does not exist, with times marked as UTC."""
    lines = [re.sub(r"^sbatch: (error: )?", "", line) for line in messages.splitlines()]
    text = "\n".join(line for line in lines if line.strip())
    text = re.sub(r"\bJob [0-9]+ to start at\b", "It would start at", text)
    text = re.sub(r"\bstart at ([0-9]{9,11})(\.[0-9]+)?\b", _as_date, text)
    text = re.sub(r"(\bstart at [0-9-]{10}T[0-9:]{8})(?! UTC)", r"\1 UTC", text)
    return re.sub(r"\bstart at ([0-9-]{10}T[0-9:]{8}) UTC", _within_a_year, text)


def _within_a_year(match: re.Match[str]) -> str:
    """Replace a start that is too far in the future to be meaningful."""
    try:
        start = plausible_start(datetime.fromisoformat(f"{match[1]}+00:00"), datetime.now(UTC))
    except ValueError:  # a site's message may resemble a time
        return match[0]
    return match[0] if start else "not start within a year"


def _as_date(match: re.Match[str]) -> str:
    """Format a time in seconds, as a site's SLURM_TIME_FORMAT may print it."""
    return f"start at {datetime.fromtimestamp(int(match[1]), UTC):%Y-%m-%dT%H:%M:%S} UTC"
