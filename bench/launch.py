"""From launch request to JupyterLab's response: Slipway against plain sbatch, in turns.

    python -m bench.launch [--rounds 16] [--tuned]

runs on the cluster of `make up`, or on the one that SLIPWAY_PROJECT and PORT name.

The floor is what a user could do without Slipway: sbatch over an open SSH connection, the same
image in Apptainer with `jupyter lab` (--tuned: with our speed options too), on a port polled
directly. Ours is POST /sessions, POST apps/jupyterlab, and polling through HAProxy, mutual TLS and
the gateway. Both wait for Slurm's scheduler, whose tick adds up to a second at random, so that part
is also shown separately.
"""

from __future__ import annotations

import argparse
import random
import shlex
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import paramiko
import requests

from tests.support.client import Api, Visitor, login
from tests.support.cluster import Cluster, wait_for
from tests.support.paths import ROOT

PAUSE = 0.05
PORT = 38888
CPUS, MEMORY_MB = 1, 1024

FLOOR = """#!/bin/bash
#SBATCH --job-name=floor --export=NIL --output=/dev/null
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task={cpus} --mem={memory}M
export PATH=/usr/local/bin:/usr/bin:/bin
mkdir -p .floor/tmp
exec apptainer --silent exec --containall --home "$PWD/.floor":/home/alice \\
    --bind "$PWD/.floor/tmp":/tmp {image} \\
    {jupyter} --ip=0.0.0.0 --port={port} {options}
"""

PLAIN = "--no-browser --IdentityProvider.token="
"""What a user without Slipway would type after `jupyter lab`."""


def jupyter_options() -> str:
    """The speed options of apps/jupyterlab/start.sh, so that both use them."""
    script = (ROOT / "apps" / "jupyterlab" / "start.sh").read_text(encoding="utf-8")
    words = shlex.split(script.partition("exec jupyter-lab")[2].replace("\\\n", " "))
    ours_alone = ("--ServerApp.sock", "--ServerApp.root_dir", "--KernelManager")
    return shlex.join(word for word in words if not word.startswith(ours_alone))


@dataclass(frozen=True)
class Round:
    """One start; times in seconds since 1970."""

    requested: float
    started: float
    """When the batch script ran its first lines."""
    answered: float

    @property
    def total(self) -> float:
        """Seconds from the request to the response."""
        return self.answered - self.requested

    @property
    def queued(self) -> float:
        """Seconds until Slurm ran the script: mostly random."""
        return self.started - self.requested

    @property
    def starting(self) -> float:
        """Seconds from there to the response."""
        return self.answered - self.started


class Alice:
    """A user whose SSH connection to the login node is open already."""

    def __init__(self, cluster: Cluster) -> None:
        self._client = paramiko.SSHClient()
        self._client.set_missing_host_key_policy(paramiko.WarningPolicy())  # our own container
        self._client.connect(
            cluster.ctl("address", "login").strip(),
            username="alice",
            password=cluster.password("alice"),
            look_for_keys=False,
            allow_agent=False,
        )

    def run(self, command: str, text: str = "") -> str:
        """Run a command and return what it printed."""
        stdin, stdout, _stderr = self._client.exec_command(command)
        stdin.write(text)
        stdin.channel.shutdown_write()
        return stdout.read().decode().strip()

    def created_at(self, folder: str) -> float:
        """When a folder was created; the batch scripts create theirs in their first lines."""
        return float(self.run(f"stat --format=%.W {folder}"))


class Floor:
    """Plain sbatch."""

    def __init__(self, cluster: Cluster, alice: Alice, *, tuned: bool) -> None:
        self._alice = alice
        self._nodes = {name: cluster.ctl("address", name).strip() for name in ("n1", "n2")}
        image = "/srv/slipway/images/python/3.13/image.sif"
        self._script = FLOOR.format(
            cpus=CPUS,
            memory=MEMORY_MB,
            image=image,
            port=PORT,
            jupyter="jupyter-lab" if tuned else "jupyter lab",
            options=jupyter_options() if tuned else PLAIN,
        )

    def round(self) -> Round:
        """Start once."""
        requested = time.time()
        job = self._alice.run("sbatch --parsable", self._script)
        try:
            poll(self._answers)
            answered = time.time()
            return Round(requested, self._alice.created_at(".floor"), answered)
        finally:
            self._alice.run(f"scancel {job}")
            wait_for(
                "the end of the floor's job", lambda: not self._alice.run(f"squeue -h -j {job}")
            )
            self._alice.run("rm -rf .floor")

    def _answers(self) -> bool:
        for address in self._nodes.values():
            try:
                url = f"http://{address}:{PORT}/api"
                return requests.get(url, timeout=(0.2, 5)).status_code == 200
            except requests.RequestException:
                continue
        return False


class Ours:
    """The same through the portal."""

    def __init__(self, cluster: Cluster, alice: Alice) -> None:
        self._alice = alice
        self._api = Api(cluster, "alice", login(cluster, "alice"))

    def round(self) -> Round:
        """Start once."""
        requested = time.time()
        session = self._api.launch(resources={"cpus": CPUS, "memory": f"{MEMORY_MB}m"})["id"]
        # Opened while it is pending, as users may: it starts as soon as the session does.
        visitor = Visitor(self._api.ask("POST", f"/sessions/{session}/apps/jupyterlab")["url"])
        visitor.http.get(visitor.link, allow_redirects=False)
        try:
            poll(lambda: self._answers(visitor))
            answered = time.time()
            return Round(
                requested, self._alice.created_at(f".slipway/sessions/{session}/home"), answered
            )
        finally:
            self._api.clean()

    @staticmethod
    def _answers(visitor: Visitor) -> bool:
        answer = visitor.get("/api", headers={"Accept": "application/json"})
        return answer.status_code == 200 and "version" in answer.json()


def at_any_time(measure: Callable[[], Round]) -> Round:
    """Measure from a random moment: otherwise ends of jobs would set the phase of Slurm's tick."""
    time.sleep(1 + random.random())  # not security relevant
    return measure()


def poll(probe: Callable[[], bool]) -> None:
    """Poll frequently, for up to a minute."""
    wait_for("JupyterLab", lambda: probe() or None, 60, PAUSE)


def report(floor: list[Round], ours: list[Round]) -> str:
    """The figures as text: medians, and the ratio of ours to the floor."""
    lines = [f"{len(ours)} rounds; medians in seconds    floor    ours   ratio"]
    for title, part in (
        ("asking to answer", lambda r: r.total),
        ("  until the script runs (chance)", lambda r: r.queued),
        ("  script to answer", lambda r: r.starting),
    ):
        low, high = (statistics.median(map(part, rounds)) for rounds in (floor, ours))
        lines.append(f"{title:36} {low:7.2f} {high:7.2f} {high / low:7.2f}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument(
        "--tuned", action="store_true", help="give the floor the options that make our Jupyter fast"
    )
    options = parser.parse_args()
    cluster = Cluster.from_environment()
    alice = Alice(cluster)
    floor, ours = Floor(cluster, alice, tuned=options.tuned), Ours(cluster, alice)
    pairs = [(at_any_time(floor.round), at_any_time(ours.round)) for _ in range(options.rounds + 1)]
    # The first pair warms up caches and connections.
    print(report([pair[0] for pair in pairs[1:]], [pair[1] for pair in pairs[1:]]))


if __name__ == "__main__":
    main()
