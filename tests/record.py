"""Records the output of a real Slurm, for the tests that replay it.

    python -m tests.record [use|limits]   on the cluster of SLIPWAY_PROJECT (default: `make up`'s)

Creates one job of each kind, writes tests/recorded/<version>/, and cancels the jobs that still run.
slurmctld is stopped for some seconds to record the commands' errors. "use" records only what jobs
use, long lists of tasks, and the jobs that ended in a span of time; it stops nothing. "limits"
records limits and rules, and leaves the cluster with them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from portal.adapters.slurm import accounting, commands, estimate, job_usage, queue, texts
from portal.adapters.slurm.limits import (
    associations,
    config,
    partitions,
    qos,
    reservations,
    used,
)
from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import Job
from tests.support.cluster import Cluster, wait_for

RECORDED = Path(__file__).parent / "recorded"
NAME = "0123456789abcdef0123456789abcdef"

JOBS = {
    "done": ("alice", "", "exit 0"),
    "failed": ("alice", "", "exit 3"),
    "oom": ("alice", "", "tail /dev/zero"),
    "cancelled": ("alice", "", "sleep 300"),
    "held": ("bob", "--hold", "sleep 300"),
}
LATER = {
    "running": ("alice", f"--job-name={NAME}", "sleep 300"),
    "running2": ("alice", "", "sleep 300"),
    "running3": ("alice", "", "sleep 300"),
    "limited": ("alice", "", "sleep 300"),
}


class Recorder:
    """Runs commands and stores their output."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        version = cluster.run("login", "sbatch", "--version").split()[1]
        self.folder = RECORDED / ".".join(version.split(".")[:2])
        self.folder.mkdir(parents=True, exist_ok=True)

    def submit(self, user: str, options: str, body: str) -> str:
        """Submit a small job."""
        script = f"#!/bin/sh\n#SBATCH --mem=100 --output=/dev/null {options}\n{body}\n"
        return self.cluster.run("login", "sbatch", "--parsable", user=user, stdin=script).strip()

    def keep(self, name: str, user: str, argv: list[str], stdin: str = "") -> None:
        """Run one command and store its output, or its error."""
        done = self.cluster.attempt(
            "exec", "--user", user, "login", "--", "env", *commands.ENVIRONMENT, *argv, stdin=stdin
        )
        # An estimate is no error, but sbatch prints it to standard error.
        good = done.returncode == 0
        text, suffix = (done.stdout or done.stderr, "txt") if good else (done.stderr, "stderr.txt")
        (self.folder / f"{name}.{suffix}").write_text(text, encoding="utf-8")


SEPARATOR = "<0123456789abcdef0123456789abcdef>"
HOSTILE = "a\n9|root|COMPLETED\x1fb"
"""A name with a line break and separators."""
OTHERS = {
    "array": "--array=0-5%2 --job-name=arr --output=out-%A_%a-%x.txt",
    "het": "--hold --job-name=het\n#SBATCH hetjob\n#SBATCH --mem=50",
    "errors": "--hold --job-name=errors --error=/tmp/errors-%4j.txt --chdir=/tmp",
}


def record_jobs(recorder: Recorder) -> None:
    """Record jobs of other kinds, with the texts that their owner wrote."""
    cluster = recorder.cluster
    ids = {role: recorder.submit("bob", options, "sleep 300") for role, options in OTHERS.items()}
    words = ["--parsable", "--hold", "--mem=50", f"--job-name={HOSTILE}", "--wrap=true"]
    ids["hostile"] = cluster.run("login", "sbatch", *words, user="bob").strip()
    waits = f"--dependency=afterok:{ids['hostile']},afterany:{ids['errors']}"
    ids["waits"] = recorder.submit("bob", waits, "true")
    time.sleep(5)
    recorder.keep("jobs-squeue", "slipway", queue.squeue_argv(user="bob"))
    asked = texts.texts_argv(ids.values())
    recorder.keep("jobs-texts", "slipway", asked, texts.texts_format(SEPARATOR))
    cluster.run("login", "scancel", "--user=bob", user="bob")
    time.sleep(5)
    which = accounting.RecordQuery(job_ids=tuple(ids.values()))
    recorder.keep("jobs-facts", "slipway", accounting.facts_argv(which))
    for name, output in (("jobs-told", True), ("jobs-told-short", False)):
        argv = accounting.texts_argv(which, SEPARATOR, output=output)
        recorder.keep(name, "slipway", argv)
    recorder.keep("jobs-hold", "bob", ["scontrol", "hold", ids["errors"]])
    text = json.dumps(ids, indent=1)
    (recorder.folder / "jobs-others.json").write_text(text, encoding="utf-8")


BUSY = "python3 -c 'x = bytearray(40 << 20); any(iter(int, 1))'"
USE = {
    "steps": ("--nodes=2 --ntasks=2", f"srun sleep 300 &\n{BUSY}"),
    "tasks": ("--array=4-5", BUSY),
    "parts": (
        "--job-name=parts\n#SBATCH hetjob\n#SBATCH --mem=50",
        "srun --het-group=0,1 sleep 300",
    ),
}
"""One after the other: a user may have three cores."""
LONG = ",".join(str(number * number) for number in range(32))


def record_use(recorder: Recorder) -> None:
    """Record what running and ended steps use, a long list of tasks, and what ended meanwhile."""
    cluster, begun = recorder.cluster, datetime.now(UTC)
    ids = {"long": recorder.submit("bob", f"--hold --array={LONG}%3", "true")}
    recorder.keep("use-squeue", "slipway", queue.squeue_argv(user="bob"))
    for role, (options, body) in USE.items():
        ids[role] = recorder.submit("bob", options, body)
        running = wait_for("it to run", lambda: _running(cluster, ids[role]) or None, 120)  # noqa: B023
        time.sleep(15)
        for place, job in enumerate(running, 1):
            ids[f"{role}-{place}"] = job.id
            recorder.keep(f"use-{role}-{place}-sstat", "bob", job_usage.sstat_argv(job))
        cluster.run("login", "scancel", ids[role], user="bob")
        time.sleep(10)
        for place, job in enumerate(running, 1):
            recorder.keep(f"use-{role}-{place}-sacct", "slipway", job_usage.sacct_argv(job))
    cluster.run("login", "scancel", ids["long"], user="bob")
    ids["waits"] = recorder.submit("bob", "--hold", "true")
    time.sleep(10)
    span = begun - timedelta(seconds=2), datetime.now(UTC)
    recorder.keep("use-ended", "slipway", accounting.facts_argv(accounting.RecordQuery(span=span)))
    cluster.run("login", "scancel", ids["waits"], user="bob")
    text = json.dumps(ids, indent=1)
    (recorder.folder / "use-jobs.json").write_text(text, encoding="utf-8")


def _running(cluster: Cluster, number: str) -> list[Job]:
    """The running jobs of a submission, in the order of their numbers."""
    words = ["env", *commands.ENVIRONMENT, *queue.squeue_argv(user="bob")]
    found = queue.squeue_parse(cluster.run("login", *words, user="slipway"))
    its = [job for job in found if number in (job.id, job.array_id, job.het_id)]
    runs = [job for job in its if job.report.state is JobState.RUNNING]
    return sorted(runs, key=lambda job: int(job.id))


def record(cluster: Cluster) -> None:
    """Create the jobs and record."""
    recorder = Recorder(cluster)
    record_use(recorder)
    record_jobs(recorder)
    ids = {role: recorder.submit(*job) for role, job in JOBS.items()}
    time.sleep(4)
    cluster.run("login", "scancel", ids["cancelled"], user="alice")
    time.sleep(4)
    ids |= {role: recorder.submit(*job) for role, job in LATER.items()}
    time.sleep(4)
    recorder.keep("squeue", "slipway", queue.squeue_argv())
    recorder.keep("squeue-named", "slipway", queue.squeue_argv(NAME, "alice"))
    recorder.keep("sacct", "slipway", accounting.sacct_argv(ids.values()))
    recorder.keep("sinfo", "slipway", commands.sinfo_argv())
    recorder.keep("nodes", "slipway", commands.nodes_argv())
    for name, option in (("refused", "--mem=99999999"), ("partition", "--partition=nix")):
        script = f"#!/bin/sh\n#SBATCH {option}\ntrue\n"
        recorder.keep(f"sbatch-{name}", "alice", commands.sbatch_argv(), script)
    for name, option in (
        ("start", ""),
        ("refused", "--mem=99999999"),
        ("partition", "--partition=nix"),
    ):
        script = f"#!/bin/sh\n#SBATCH --mem=100 {option}\ntrue\n"
        recorder.keep(f"estimate-{name}", "alice", estimate.estimate_argv(), script)
    for user in ("alice", "bob"):
        cluster.run("login", "scancel", f"--user={user}", user=user)
    record_silence(recorder)
    (recorder.folder / "jobs.json").write_text(json.dumps(ids, indent=1), encoding="utf-8")


LIMITS = {
    "assoc": associations.associations_argv(),
    "accounts": associations.accounts_argv(),
    "users": associations.users_argv(),
    "qos": qos.qos_argv(),
    "qos-texts": qos.qos_texts_argv(),
    "used": used.used_argv(),
    "partition": partitions.entries_argv(),
    "features": partitions.features_argv(),
    "reservations": reservations.reservations_argv(),
    "config": config.config_argv(),
}
# Every kind of limit that the portal reads, and names as odd as Slurm permits them.
SET = (
    "sacctmgr -i add account physics Description='Physik|Teilchen & Müll'",
    "sacctmgr -i add account 'chem-2.ü' Description='Chemie\nresearch|stolen'",
    "sacctmgr -i add account 'a b' Description=space",
    "sacctmgr -i add account 'a|b' Description=bar",
    "sacctmgr -i add account 'nl\nname' Description=lines",
    "sacctmgr -i add qos high Description='Für eilige | Jobs' Preempt=normal PreemptMode=requeue "
    "MaxJobsPA=4 MaxSubmitJobsPU=5 MaxSubmitJobsPA=6 GrpJobs=7 GrpSubmit=8 MinTRES=cpu=1 "
    "GrpTRESMins=cpu=1000,gres/gpu=50,mem=100000",
    "sacctmgr -i add qos 'odd qös'",
    "sacctmgr -i modify account research set GrpTRES=cpu=40,mem=1T MaxTRES=cpu=8",
    "sacctmgr -i modify account physics set GrpTRESMins=cpu=5000,gres/gpu=10 GrpJobs=3 "
    "GrpSubmitJobs=9 fairshare=7 qos=normal,high",
    "sacctmgr -i add user alice account=physics qos=normal,high defaultqos=high",
    "sacctmgr -i modify user alice where account=physics set MaxSubmitJobs=11 fairshare=5",
    "sacctmgr -i modify user alice where account=research set GrpTRES=cpu=20 MaxJobs=7 "
    "MaxWall=04:00:00",
    "sacctmgr -i modify user bob set MaxTRESPerNode=mem=1500M",
    "sacctmgr -i modify qos normal set MaxTRESPerJob=cpu=2 MaxJobsPerUser=9 MaxWall=2-00:00:00",
    "scontrol create partitionname='pä+rt.1' nodes=n2 allowgroups='users,domain users'",
    "scontrol create partitionname='sp ace' nodes=n2 allowaccounts=physics allowqos=high",
    "scontrol create partitionname=hid nodes=n2 hidden=yes rootonly=yes reqresv=yes "
    "oversubscribe=force:3 exclusiveuser=yes preemptmode=requeue prioritytier=9 minnodes=2 "
    "state=drain",
    "scontrol update nodename=n1 availablefeatures=intel,skylake,'gpu-ü' activefeatures=intel",
    "scontrol create reservation reservationname='kürs-1' starttime=now duration=120 nodes=n1 "
    "users=alice,bob flags=overlap",
    "scontrol create reservation reservationname='odd r' starttime=now+1hour duration=120 "
    "nodecnt=1 accounts=-research",
    "scontrol create reservation reservationname=minus starttime=now+1day duration=10 nodecnt=1 "
    "users=-bob accounts=physics partitionname=short",
    "scontrol create reservation reservationname=forever starttime=now+2days duration=UNLIMITED "
    "nodecnt=1 accounts=physics flags=maint,ignore_jobs features=intel",
)
WORK = "#!/bin/sh\nsleep 100\n"


def record_limits(recorder: Recorder) -> None:
    """Record limits of every kind, as seen by an account without privileges.

    They stay: this is for a cluster that is thrown away afterwards. A job uses some of the
    account's time, which the controller counts every PriorityCalcPeriod.
    """
    cluster = recorder.cluster
    recorder.keep("reservations-none", "slipway", reservations.reservations_argv())
    for words in SET:
        cluster.run("ctl", "sh", "-c", words)
    argv = ["sbatch", "--account=physics", "--qos=normal", "--output=/dev/null", "--time=5"]
    cluster.run("login", *argv, "--cpus-per-task=2", "--mem=100", user="alice", stdin=WORK)
    argv = ["scontrol", "--oneliner", "show", "assoc_mgr", "flags=assoc", "accounts=physics"]
    counted = r"GrpTRESMins=cpu=5000\([1-9]"
    wait_for("usage", lambda: re.search(counted, cluster.run("ctl", *argv)), 540, 5)
    for name, argv in LIMITS.items():
        recorder.keep(name, "slipway", argv)


def record_silence(recorder: Recorder) -> None:
    """Record the commands' output while slurmctld is stopped."""
    recorder.cluster.daemon("stop", "ctl", "slurmctld")
    try:
        recorder.keep("sbatch-down", "alice", commands.sbatch_argv(), "#!/bin/sh\ntrue\n")
        recorder.keep("squeue-down", "slipway", queue.squeue_argv())
        recorder.keep("scancel-down", "alice", commands.scancel_argv("1"))
    except subprocess.TimeoutExpired as error:
        raise SystemExit(f"a command hung without slurmctld: {error}") from error
    finally:
        recorder.cluster.daemon("start", "ctl", "slurmctld")


if __name__ == "__main__":
    if sys.argv[1:] == ["use"]:
        record_use(Recorder(Cluster.from_environment()))
    elif sys.argv[1:] == ["limits"]:
        record_limits(Recorder(Cluster.from_environment()))
    else:
        record(Cluster.from_environment())
