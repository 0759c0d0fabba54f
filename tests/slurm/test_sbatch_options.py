"""All options of sbatch, with and without an image: the jobs and the refusals are the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from tests.slurm.batch import Batch
from tests.support.cluster import Cluster
from tests.support.paths import ROOT

OPTIONS = json.loads((ROOT / "tests" / "recorded" / "sbatch_options.json").read_text())
VALUES = {
    "account": "research",
    "acctg-freq": "30",
    "array": "0-3%2",
    "batch": "x",
    "begin": "now+1hour",
    "chdir": "/tmp",
    "comment": "a comment",
    "constraint": "x",
    "cpu-freq": "low",
    "deadline": "now+2hours",
    "dependency": "singleton",
    "distribution": "block",
    "error": "e-%j",
    "exclude": "n2",
    "export": "A=1",
    "extra": "x",
    "gpu-bind": "none",
    "gres": "shard:1",
    "gres-flags": "enforce-binding",
    "hint": "nomultithread",
    "input": "/etc/hostname",
    "job-name": "na me",
    "kill-on-invalid-dep": "yes",
    "licenses": "x:1",
    "mail-type": "END",
    "mail-user": "alice@example.org",
    "mem": "200M",
    "mem-bind": "none",
    "mem-per-cpu": "150M",
    "mem-per-gpu": "150M",
    "network": "x",
    "nodefile": "nodes",
    "nodelist": "n1",
    "nodes": "1-2",
    "open-mode": "append",
    "output": "o-%j",
    "partition": "short",
    "prefer": "x",
    "profile": "none",
    "propagate": "NONE",
    "qos": "normal",
    "reservation": "x",
    "signal": "B:USR1@60",
    "switches": "1",
    "time": "7",
    "time-min": "3",
    "tmp": "0",
    "tres-bind": "x",
    "tres-per-task": "cpu:1",
    "wckey": "x",
    "wrap": "true",
    "clusters": "x",
    "cluster": "x",
    "resources": "x",
}
# Slurm's fields that differ between two submissions of the same job.
OWN = {
    "accrue_time", "command", "deadline", "eligible_time", "end_time", "job_id",
    "last_sched_evaluation", "licenses_allocated", "preemptable_time", "priority", "sluid",
    "start_time", "step_id", "submit_line", "submit_time",
}  # fmt: skip
# Slurm 26.05 shows the last three.
PATHS = {
    "standard_error", "standard_input", "standard_output",
    "stderr_expanded", "stdin_expanded", "stdout_expanded",
}  # fmt: skip


@pytest.fixture(scope="module")
def batch(cluster: Cluster) -> Iterator[Batch]:
    """Alice's folder on the login node, with a script and a list of nodes."""
    found = Batch(cluster, folder="options")
    found.write("job.sh", "#!/bin/sh\n#SBATCH --mem=100M --comment='from the script'\n")
    found.write("nodes", "n1\n")
    yield found
    found.clean()


def words_of(option: str) -> list[str]:
    """The option with a value as the script's author would write it."""
    kinds = set(OPTIONS[option]["arg"].values())
    return [
        f"--{option}={VALUES.get(option, '1')}" if "required_argument" in kinds else f"--{option}"
    ]


Outcome = tuple[int, str, list[dict[str, Any]]]
"""Exit code, words and jobs of a submission."""


@pytest.fixture(scope="module")
def plain(batch: Batch) -> Callable[[str], Outcome]:
    """What sbatch itself does with an option; it is asked once."""
    return cache(lambda option: outcome(batch, "sbatch", option=option))


def outcome(batch: Batch, *command: str, option: str) -> Outcome:
    """What becomes of a submission; the jobs are held, and cancelled at once."""
    words = [*command, "--hold", *words_of(option), *([] if option == "wrap" else ["job.sh", "x"])]
    line = " ".join(f"'{word}'" for word in words) + " < /dev/null"
    if option == "wait":
        return _waited_for(batch, line)
    done = batch.shell(line)
    text = re.sub(r"/tmp/slipway-\w+/", "", done.stdout + done.stderr)
    printed = done.stdout
    if option == "quiet":  # it prints no number: the job is the last one
        printed += batch.shell("squeue --me --noheader --format=%A --sort=-i | head -n 1").stdout
    number = re.search(r"(?:job |^)(\d+)$", printed, re.MULTILINE)
    if number is None or done.returncode != 0:
        return done.returncode, _plain(text, ""), []
    look = f"scontrol show job {number[1]} --json; scancel {number[1]}"
    jobs = json.loads(batch.cluster.shell("login", look, batch.user, check=False))["jobs"]
    return 0, _plain(text, number[1]), [_comparable(job, number[1]) for job in jobs]


# Prints the job while sbatch waits for it, then cancels it.
_WAIT = """{{
{line} > wait.out 2>&1 & waits=$!
for _ in $(seq 100); do grep -q '[0-9]$' wait.out && break; sleep 0.1; done
number=$(grep -o '[0-9]*$' wait.out)
scontrol show job $number --json
scancel $number
wait $waits
echo $? $number >&2
cat wait.out >&2
}}"""


def _waited_for(batch: Batch, line: str) -> Outcome:
    done = batch.shell(_WAIT.format(line=line))
    ends, _, text = done.stderr.partition("\n")
    code, number = ends.split()
    jobs = json.loads(done.stdout)["jobs"]
    return int(code), _plain(text, number), [_comparable(job, number) for job in jobs]


def _plain(text: str, number: str) -> str:
    text = re.sub(rf"\b{number}\b", "N", text) if number else text
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "T", re.sub(r"\bJob \d+", "Job N", text))


def _comparable(job: dict[str, Any], number: str) -> dict[str, Any]:
    kept = {key: value for key, value in job.items() if key not in OWN}
    # Whether the scheduler has looked at what it depends on; that itself is compared.
    kept["flags"] = [flag for flag in kept["flags"] if flag != "DEPENDENT"]
    array = kept["array_job_id"]
    array["number"] = "N" if str(array["number"]) == number else array["number"]
    # Otherwise only in paths: a size or the user's number could happen to be the same.
    for stream in PATHS & kept.keys():
        kept[stream] = re.sub(rf"(?<!\d){number}(?!\d)", "N", kept[stream])
    return kept


@pytest.mark.parametrize("option", sorted(OPTIONS))
def test_the_job_is_the_same_with_an_image(
    option: str, batch: Batch, plain: Callable[[str], Outcome]
) -> None:
    passed = outcome(batch, "slipway", "sbatch", option=option)
    imaged = outcome(batch, "slipway", "sbatch", "--image=debian/13", option=option)
    assert passed == plain(option)
    assert imaged == plain(option)


def test_most_of_them_make_a_job(plain: Callable[[str], Outcome]) -> None:
    made = [option for option in OPTIONS if plain(option)[2]]
    assert len(made) >= 60
