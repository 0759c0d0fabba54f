"""From asking to JupyterLab answering: Slipway against plain sbatch, turn by turn in one run.

    python -m bench.launch [--rounds 12]      on the cluster of `make up` (or SLIPWAY_PROJECT, PORT)

The floor is what a user could do at best without us: sbatch over an open SSH connection, the same
image in Apptainer with the same Jupyter options, on a TCP port that is polled directly. Ours is
POST /sessions, POST apps/jupyterlab, and polling through HAProxy, mutual TLS and the gateway.
Both wait for Slurm's scheduler, whose tick adds up to a second by chance: compare medians.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import paramiko
import requests

from tests.client import Api, Visitor, login
from tests.cluster import ROOT, Cluster, wait_for

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
    jupyter-lab --ip=0.0.0.0 --port={port} --allow-root {options}
"""


def jupyter_options() -> str:
    """The options of apps/jupyterlab/start.sh that are about speed, so that both get them."""
    script = (ROOT / "apps" / "jupyterlab" / "start.sh").read_text(encoding="utf-8")
    words = shlex.split(script.partition("exec jupyter-lab")[2].replace("\\\n", " "))
    ours_alone = ("--ServerApp.sock", "--ServerApp.root_dir", "--KernelManager")
    return shlex.join(word for word in words if not word.startswith(ours_alone))


@dataclass
class Times:
    """Seconds of each round, and where ours went."""

    floor: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    steps: dict[str, list[float]] = field(default_factory=dict)

    def note(self, step: str, seconds: float) -> None:
        """Remember one step of one round."""
        self.steps.setdefault(step, []).append(seconds)


class Floor:
    """Plain sbatch by alice."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client = paramiko.SSHClient()
        self._client.set_missing_host_key_policy(paramiko.WarningPolicy())  # our own container
        address = cluster.ctl("address", "login").strip()
        self._client.connect(
            address, username="alice", password=cluster.password("alice"), look_for_keys=False,
            allow_agent=False,
        )  # fmt: skip
        self._nodes = {name: cluster.ctl("address", name).strip() for name in ("n1", "n2")}
        image = "/srv/slipway/images/python/3.13/image.sif"
        self._script = FLOOR.format(
            cpus=CPUS, memory=MEMORY_MB, image=image, port=PORT, options=jupyter_options()
        )

    def _run(self, command: str, text: str = "") -> str:
        stdin, stdout, _stderr = self._client.exec_command(command)
        stdin.write(text)
        stdin.channel.shutdown_write()
        return stdout.read().decode().strip()

    def round(self) -> float:
        """Seconds from sbatch to the first answer of Jupyter."""
        begun = time.monotonic()
        job = self._run("sbatch --parsable", self._script)
        try:
            poll(self._answers)
            return time.monotonic() - begun
        finally:
            self._run(f"scancel {job}")
            wait_for("the floor's job to end", lambda: not self._run(f"squeue -h -j {job}"))

    def _answers(self) -> bool:
        for address in self._nodes.values():
            try:
                url = f"http://{address}:{PORT}/api"
                return requests.get(url, timeout=(0.2, 5)).status_code == 200
            except requests.RequestException:
                continue
        return False

    def close(self) -> None:
        """Tidy up."""
        self._run("rm -rf .floor")
        self._client.close()


class Ours:
    """The same through the portal."""

    def __init__(self, cluster: Cluster, times: Times) -> None:
        self._cluster = cluster
        self._api = Api(cluster, "alice", login(cluster, "alice"))
        self._times = times

    def round(self) -> float:
        """Seconds from POST to the first answer of Jupyter through the proxy."""
        begun = time.monotonic()
        resources = {"cpus": CPUS, "memory": f"{MEMORY_MB}m"}
        session = self._api.launch(resources=resources)["id"]
        launched = time.monotonic()
        link = self._api.ask("POST", f"/sessions/{session}/apps/jupyterlab")
        visitor = Visitor(link["url"])
        visitor.http.get(visitor.link, allow_redirects=False)
        entered = time.monotonic()
        try:
            poll(lambda: self._answers(visitor))
            done = time.monotonic()
        finally:
            shown = self._api.ask("GET", f"/sessions/{session}/log")["log"]
            self._api.clean()
        self._times.note("POST /sessions (validate, store, sbatch)", launched - begun)
        self._times.note("POST app, ticket, cookie (while Slurm schedules)", entered - launched)
        self._times.note("Slurm, container, runner, Jupyter, first answer", done - entered)
        assert "jupyterlab: ready" in shown, shown
        return done - begun

    @staticmethod
    def _answers(visitor: Visitor) -> bool:
        answer = visitor.get("/api", headers={"Accept": "application/json"})
        return answer.status_code == 200 and "version" in answer.json()


def poll(probe: Callable[[], bool]) -> None:
    """Ask as often as makes sense, for a minute."""
    wait_for("JupyterLab", lambda: probe() or None, 60, PAUSE)


def report(times: Times) -> str:
    """The figures as text."""
    floor, ours = statistics.median(times.floor), statistics.median(times.ours)
    lines = [
        f"floor (sbatch + Apptainer + Jupyter):  {floor:.2f} s  {spread(times.floor)}",
        f"ours  (portal, gateway, proxy):        {ours:.2f} s  {spread(times.ours)}",
        f"ratio of medians:                      {ours / floor:.2f}",
        "where ours goes (medians):",
    ]
    lines += [f"  {statistics.median(took):5.2f} s  {step}" for step, took in times.steps.items()]
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    """Smallest and largest."""
    return f"({min(values):.2f} to {max(values):.2f}, {len(values)} rounds)"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    rounds = parser.parse_args().rounds
    cluster, times = Cluster.from_environment(), Times()
    floor, ours = Floor(cluster), Ours(cluster, times)
    try:
        for number in range(rounds + 1):
            pair = (floor.round(), ours.round())
            if number:  # the first one warms caches and connections
                times.floor.append(pair[0])
                times.ours.append(pair[1])
    finally:
        floor.close()
    print(report(times))


if __name__ == "__main__":
    main()
