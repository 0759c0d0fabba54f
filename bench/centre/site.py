"""The state of a centre on a cluster of containers: accounts, nodes, queued and running jobs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.centre import seed
from tests.support.cluster import CTL, Cluster, restart_portal, wait_for

ACCOUNT = "centre"
"""In Slurm's accounting, with a QOS of the same name; also the partition of what runs."""
FIRST_UID = 7001
NODES = """\
# {name} begin
MaxJobCount=200000
MessageTimeout=60
ResumeProgram=/bin/true
SuspendProgram=/bin/true
ResumeTimeout=3600
SuspendTime=-1
NodeName=e[0001-{nodes:04}] CPUs=64 RealMemory=256000 State=CLOUD
PartitionName=emulated Nodes=e[0001-{nodes:04}] State=UP
PartitionName={name} Nodes=n2 OverSubscribe=FORCE:2000 MaxTime=1-0 State=UP
# {name} end
"""
NO_NODES = f"sed -i '/^# {ACCOUNT} begin/,/^# {ACCOUNT} end/d' /etc/slurm/slurm.conf"
QUEUE = """
cd /
for name in $2; do
    id=$(sbatch --parsable --uid="$name" --array=0-$1 --hold --mem=1 --partition=$3 \\
        --account=$4 --job-name=queued --output=/dev/null --wrap=true) || exit 1
    # A change of some of its tasks gives each of them a record, as single jobs have.
    [ "$1" = 0 ] || scontrol update JobId="${id}_[0-$(($1 - 1))]" Nice=1 || exit 1
done
"""
ALLOCATE = """
cd /
xargs -P 4 -L 1 sh -c 'setpriv --reuid=$0 --regid=people --clear-groups -- \\
    salloc --quiet --no-shell --mem=1 --partition=$2 --account=$3 --job-name=$1 --time=8:00:00'
"""
"""Allocations without a program: the node has nothing to do for them."""
OCCUPY = """
setpriv --reuid=$1 --regid=people --clear-groups -- salloc --quiet --no-shell --exclusive \\
    --nodelist=n1 --partition=main --account=$2 --job-name=busy --time=8:00:00
"""
ADD_PEOPLE = """
gid=$(getent group people | cut -d: -f3)
seq -f '%04g' 1 "$1" | while read -r number; do
    uid=$(($(echo "$number" | sed 's/^0*//') + $3 - 1))
    echo "$4$number:x:$uid:${gid:-$uid}::/home/$4$number:/bin/bash" >> /etc/passwd
    echo "$4$number:$2:20000:0:99999:7:::" >> /etc/shadow
    [ -z "$gid" ] || install -d -m 700 -o "$uid" -g "$gid" "/home/$4$number"
done
"""
NO_PEOPLE = f"sed -i '/^{ACCOUNT}[0-9]/d' /etc/passwd /etc/shadow"
RUNNERS_PORT = 41000
MACHINES = ("login", "ctl", "n1", "n2")
PATIENCE = 900.0
SEED = "/run/centre_seed.py"


@dataclass(frozen=True)
class Size:
    """How large the centre is."""

    people: int = 300
    nodes: int = 1000
    jobs: int = 50_000
    sessions: int = 1000
    ended: int = 10_000
    grants: int = 10_000


@dataclass
class Site:
    """The centre, as clients need to know it."""

    cluster: Cluster
    size: Size
    password: str
    running: list[dict[str, Any]] = field(default_factory=list)

    @property
    def people(self) -> list[str]:
        """The names of the accounts."""
        return [f"{ACCOUNT}{number:04}" for number in range(1, self.size.people + 1)]

    @property
    def file(self) -> Path:
        """Where this machine remembers what was prepared, with the secrets."""
        return CTL.parent / ".cache" / "projects" / self.cluster.project / "centre.json"

    def prepare(self) -> None:
        """Make the cluster a centre, unless an earlier run has left one of this size."""
        if self.file.exists():
            kept = json.loads(self.file.read_text(encoding="utf-8"))
            if kept["size"] == asdict(self.size):
                self.password, self.running = kept["password"], kept["running"]
                return
        self.remove()  # of another size, or what a run has left that was interrupted
        self._add_people()
        self._add_nodes()  # slurmctld starts anew, and looks the people's UIDs up
        with self._portal_stopped():
            self.running = self._allocate()
            self._store()
            self._queue()
        kept = {"size": asdict(self.size), "password": self.password, "running": self.running}
        self.file.touch(0o600)
        self.file.write_text(json.dumps(kept), encoding="utf-8")

    def remove(self) -> None:
        """Leave the cluster as it was; Slurm forgets the jobs after its MinJobAge."""
        self.file.unlink(missing_ok=True)
        self.cluster.run("login", "scancel", f"--account={ACCOUNT}", seconds=PATIENCE, check=False)
        ours = ("squeue", "--noheader", f"--account={ACCOUNT}", "--states=PD,CG,R,S")
        gone = partial(self.cluster.run, "ctl", *ours, check=False)
        wait_for("the end of the jobs", lambda: not gone(), PATIENCE, 2)
        people = self.cluster.shell(
            "ctl", f"getent passwd | grep -o '^{ACCOUNT}[0-9]*'", check=False
        )
        for kind, names in {
            "user": ",".join(people.split()),
            "account": ACCOUNT,
            "qos": ACCOUNT,
        }.items():
            change = ("sacctmgr", "-i", "-Q", "delete", kind, names)
            self.cluster.run("ctl", *change, seconds=PATIENCE, check=False)
        with self._portal_stopped():
            self._seed({})
        for machine in MACHINES:
            self.cluster.shell(machine, NO_PEOPLE)
        self.cluster.shell("login", f"rm -rf /home/{ACCOUNT}[0-9]*")
        self.cluster.shell("ctl", NO_NODES)
        self._restart_slurmctld()

    def _add_nodes(self) -> None:
        """Emulated nodes, which Slurm takes for switched off, and a partition for what runs."""
        self.cluster.shell("ctl", NO_NODES)
        block = NODES.format(name=ACCOUNT, nodes=self.size.nodes)
        self.cluster.run("ctl", "sh", "-c", "cat >> /etc/slurm/slurm.conf", stdin=block)
        self._restart_slurmctld()

    def _restart_slurmctld(self) -> None:
        self.cluster.daemon("restart", "ctl", "slurmctld")
        ask = ("exec", "ctl", "--", "sinfo", "--noheader")
        wait_for("slurmctld", lambda: self.cluster.attempt(*ask).returncode == 0, 120)

    def _add_people(self) -> None:
        hashed = self.cluster.run(
            "ctl", "openssl", "passwd", "-6", "-stdin", stdin=self.password
        ).strip()
        words = ("sh", str(self.size.people), hashed, str(FIRST_UID), ACCOUNT)
        for machine in MACHINES:
            self.cluster.shell(machine, NO_PEOPLE)
            self.cluster.run(machine, "sh", "-c", ADD_PEOPLE, *words, seconds=PATIENCE)
        change = ("sacctmgr", "-i", "-Q")
        for entry in (
            ("add", "qos", ACCOUNT),
            ("add", "account", ACCOUNT, f"Description={ACCOUNT}", "Organization=demo"),
            ("modify", "account", ACCOUNT, "set", f"QOS={ACCOUNT}", f"DefaultQOS={ACCOUNT}"),
            ("add", "user", ",".join(self.people), f"Account={ACCOUNT}"),
        ):
            self.cluster.run("ctl", *change, *entry, seconds=PATIENCE, check=False)

    def _queue(self) -> None:
        """Jobs that wait, the same number of everybody's."""
        each = max(self.size.jobs // self.size.people, 1)
        words = ("sh", str(each - 1), " ".join(self.people), ACCOUNT, ACCOUNT)
        self.cluster.run("login", "bash", "-c", QUEUE, *words, seconds=PATIENCE)

    def _allocate(self) -> list[dict[str, Any]]:
        """Jobs that run, and whose jobs they are."""
        owners = [self.people[n % len(self.people)] for n in range(self.size.sessions)]
        names = {secrets.token_hex(16): owner for owner in owners}
        lines = "".join(f"{owner} {name} {ACCOUNT} {ACCOUNT}\n" for name, owner in names.items())
        self.cluster.run("login", "bash", "-c", ALLOCATE, stdin=lines, seconds=PATIENCE)
        # Whatever is launched waits, as in a full cluster.
        self._occupy()
        listed = self.cluster.run("ctl", "squeue", "-h", "-t", "R", "-p", ACCOUNT, "-o", "%A %j")
        jobs = {name: job for job, name in map(str.split, listed.splitlines())}
        address = self.cluster.ctl("address", "n2").strip()
        node = {"node": "n2", "address": address, "partition": ACCOUNT}
        return [
            {"id": name, "owner": owner, "job": jobs[name], "token": secrets.token_hex(16)} | node
            for name, owner in names.items()
        ]

    def _occupy(self) -> None:
        self.cluster.run("login", "sh", "-c", OCCUPY, "sh", self.people[0], ACCOUNT)

    @contextmanager
    def free_node(self) -> Iterator[None]:
        """Let what is launched run, on one node."""
        self.cluster.run("login", "scancel", "--name=busy")
        try:
            yield
        finally:
            self._occupy()

    def _store(self) -> None:
        over = [
            {
                "id": secrets.token_hex(16), "owner": self.people[n % len(self.people)],
                "job": str(10**8 + n), "token": "", "node": "n2",
            }
            for n in range(self.size.ended)
        ]  # fmt: skip
        self._seed(
            {
                "running": self.running, "over": over, "grants": self.size.grants,
                "port": RUNNERS_PORT,
            }
        )  # fmt: skip

    def _seed(self, rows: dict[str, Any]) -> None:
        script = Path(seed.__file__).read_text(encoding="utf-8")
        self.cluster.ctl("put", "portal", SEED, stdin=script)
        as_owner = ("runuser", "--user", "slipway", "--", "/opt/venv/bin/python", SEED)
        self.cluster.run("portal", *as_owner, stdin=json.dumps(rows), seconds=PATIENCE)

    @contextmanager
    def _portal_stopped(self) -> Iterator[None]:
        """The worker would adopt, or end, what it finds half-made; HAProxy starts with the new
        routes."""
        with self.worker_stopped():
            try:
                yield
            finally:
                restart_portal(self.cluster, "haproxy")

    @contextmanager
    def worker_stopped(self) -> Iterator[None]:
        """Stop the workers of all hosts, and start them again."""
        for host in self.cluster.portals:
            self.cluster.daemon("stop", host, "worker")
        try:
            yield
        finally:
            for host in self.cluster.portals:
                self.cluster.daemon("start", host, "worker")
