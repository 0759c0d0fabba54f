"""Combinations of Slurm's options, judged by sbatch and by the portal."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from tests.support.client import Api, Json
from tests.support.cluster import Cluster

MEMORY_MB = 600
LEARNT = 90.0
"""Seconds until the portal has read changed limits."""


@dataclass(frozen=True)
class Choice:
    """One combination of Slurm's options; None leaves the choice to Slurm."""

    account: str | None = None
    qos: str | None = None
    partition: str | None = None
    reservation: str | None = None
    constraint: str | None = None
    exclusive: bool = False
    minutes: int | None = None
    cores: int = 1

    def __str__(self) -> str:
        chosen = {name: value for name, value in asdict(self).items() if value}
        return " ".join(f"{name}={value}" for name, value in chosen.items())

    def argv(self) -> list[str]:
        """The options of an sbatch command."""
        named = {
            "account": self.account,
            "qos": self.qos,
            "partition": self.partition,
            "reservation": self.reservation,
            "constraint": self.constraint,
            "time": self.minutes,
        }
        words = [f"--{name}={value}" for name, value in named.items() if value is not None]
        words += ["--exclusive"] if self.exclusive else []
        return [*words, "--nodes=1", "--ntasks=1", f"--cpus-per-task={self.cores}"]

    def body(self) -> Json:
        """The fields of a launch request."""
        named = {
            "account": self.account,
            "qos": self.qos,
            "resource_group": self.partition,
            "reservation": self.reservation,
            "constraint": self.constraint,
            "time_limit": self.minutes,
        }
        chosen: Json = {name: value for name, value in named.items() if value}
        chosen["exclusive"] = self.exclusive
        resources = {"cpus": self.cores, "memory": f"{MEMORY_MB}m"}
        return chosen | {"environment": "python", "resources": resources}


SCRIPT = """
cd /tmp
while IFS= read -r options; do
    eval "sbatch --test-only --mem=$1M $options --wrap=true" 2>&1 </dev/null | tr '\\n' ' '
    echo
done
"""


def slurm_refusals(cluster: Cluster, user: str, asked: list[Choice]) -> list[str]:
    """What sbatch --test-only says to each as this user; "" where it accepts."""
    lines = [" ".join(f"'{word}'" for word in one.argv()) for one in asked]
    argv = ["sh", "-c", SCRIPT, "sh", str(MEMORY_MB)]
    text = cluster.run("login", *argv, user=user, stdin="\n".join(lines) + "\n", seconds=240)
    answers = text.splitlines()
    assert len(answers) == len(asked), text[-2000:]
    return ["" if re.search(r"Job \d+ to start at ", line) else line for line in answers]


def portal_refusal(api: Api, one: Choice) -> str:
    """Why we refuse a launch; "" where we accept it.

    An estimate checks what a launch checks, and launches nothing.
    """
    answer = api("POST", "/sessions/estimate", json=one.body())
    if answer.status_code == 200:
        return ""
    assert answer.status_code == 422, f"{one}: {answer.status_code} {answer.text}"
    errors = answer.json()["errors"]
    assert all(error["field"] and error["message"] for error in errors), f"{one}: {errors}"
    return json.dumps(errors)
