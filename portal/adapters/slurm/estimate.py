"""sbatch --test-only: its arguments, and the parser of its output."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from portal.adapters.slurm.commands import UnexpectedOutput, read_time
from portal.core.cluster.job_reports import Estimate, plausible_start


def estimate_argv() -> list[str]:
    """Estimate when the script on standard input would start, without submitting it."""
    return ["sbatch", "--test-only"]


# The text between start and nodes depends on the version: 26.05.5 has a stray letter there.
_ESTIMATE = re.compile(
    r"^sbatch: .*?\bto start at (?P<start>\S+)(?:.*? on (?:nodes? )?(?P<node>\S+))?",
    re.MULTILINE,
)


def estimate_parse(text: str) -> Estimate:
    """Parse what sbatch --test-only wrote to standard error."""
    match = _ESTIMATE.search(text)
    start = read_time(match["start"]) or _written_time(match["start"]) if match else None
    if match is None or start is None:
        raise UnexpectedOutput(f"sbatch --test-only: no start in {text!r}")
    if plausible_start(start, datetime.now(UTC)) is None:
        return Estimate(None, "", "Slurm expects no start within a year.")
    return Estimate(start, match["node"] or "", "")


def _written_time(text: str) -> datetime | None:
    """A time in other formats than our SLURM_TIME_FORMAT, which some versions ignore here: seconds
    since 1970 with a fraction, or Slurm's default format in UTC (our TZ)."""
    if re.fullmatch(r"[0-9]{1,11}\.[0-9]+", text):
        return datetime.fromtimestamp(int(text.partition(".")[0]), UTC)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
