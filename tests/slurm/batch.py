"""Batch jobs on a real cluster, submitted on the login node as users do."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass

from tests.support.cluster import Cluster, wait_for

SLIPWAY = ("slipway", "sbatch")
OVER = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "TIMEOUT",
}  # fmt: skip


@dataclass(frozen=True)
class End:
    """How a job ended, as accounting has it."""

    state: str
    exit_code: str
    """sacct's ExitCode: exit code and signal, as "7:0"."""


class Batch:
    """Submits and observes one user's batch jobs, in a folder of their own."""

    def __init__(self, cluster: Cluster, user: str = "alice", folder: str = "batch") -> None:
        self.cluster = cluster
        self.user = user
        self.folder = f"/home/{user}/{folder}"
        self.shell(f"rm -rf {self.folder}; mkdir {self.folder}", folder="/")

    def shell(
        self, script: str, *, stdin: str = "", folder: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell script in the folder on the login node."""
        line = f"cd {shlex.quote(folder or self.folder)} && {script}"
        argv = ["exec", "--user", self.user, "login", "--", "bash", "-lc", line]
        return self.cluster.attempt(*argv, stdin=stdin, seconds=120)

    def write(self, name: str, text: str) -> None:
        """Write a file in the folder."""
        done = self.shell(f"cat > {shlex.quote(name)}", stdin=text)
        assert done.returncode == 0, done.stderr

    def submit(self, script: str, *options: str, command: tuple[str, ...] = SLIPWAY) -> str:
        """Submit a script from standard input; its output goes to NUMBER.out."""
        usual = ("--parsable", "--mem=150M", "--output=%j.out", "--time=5")
        return self.submitted(*command, *usual, *options, stdin=script)

    def submitted(self, *words: str, stdin: str = "") -> str:
        """Run a command that prints a job's number."""
        done = self.shell(shlex.join(words), stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def end(self, job: str, seconds: float = 60) -> End:
        """Wait until accounting has a job's end."""

        def ended() -> End | None:
            argv = ["sacct", "-n", "-X", "-P", "-o", "State,ExitCode", "-j", job]
            lines = self.cluster.run("login", *argv, user=self.user).splitlines()
            ends = [End(state.split()[0], code) for state, code in (x.split("|") for x in lines)]
            return ends[0] if ends and all(end.state in OVER for end in ends) else None

        return wait_for(f"the end of job {job}", ended, seconds)

    def output(self, job: str) -> str:
        """A job's output so far."""
        file = f"{self.folder}/{job}.out"
        return self.cluster.run("login", "cat", file, user=self.user, check=False)

    def wait_output(self, job: str, text: str) -> None:
        """Wait until a job's output contains a text."""
        wait_for(f"{text!r} in the output of job {job}", lambda: text in self.output(job))

    def clean(self) -> None:
        """Cancel all jobs and delete the folder."""
        self.shell(f"scancel --me; rm -rf {self.folder}", folder="/")
