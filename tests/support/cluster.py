"""A running cluster as seen by the tests: machines, daemons, queue and accounts."""

from __future__ import annotations

import functools
import os
import re
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import requests

from tests.support.machine_shells import SHELLS
from tests.support.paths import ROOT

CTL = ROOT / "cluster" / "ctl.sh"
DEMO = "slipway"

Found = TypeVar("Found")


SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 0.5
"""Seconds between two polls: a tenth of the time waited so far, within these limits. A poll takes
processor time that other clusters need.
"""


def wait_for(
    what: str, probe: Callable[[], Found | None], seconds: float = 30, pause: float | None = None
) -> Found:
    """Poll until the result is neither None nor False; fail with `what` at the timeout."""
    begun = time.monotonic()
    deadline = begun + seconds
    while True:
        found = probe()
        if found is not None and found is not False:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}; last answer: {found!r}")
        usual = min(max((time.monotonic() - begun) / 10, SHORTEST_PAUSE), LONGEST_PAUSE)
        time.sleep(usual if pause is None else pause)


@dataclass(frozen=True)
class Job:
    """A job as squeue reports it."""

    id: str
    user: str
    state: str
    reason: str
    name: str


def healthy(cluster: Cluster) -> bool:
    """Whether the portal answers."""
    try:
        answer = requests.get(f"{cluster.url}/healthz", timeout=5, verify=authority() or True)
        return answer.status_code == 200
    except requests.RequestException:
        return False


def restart_portal(cluster: Cluster, *daemons: str) -> None:
    """Restart these daemons of the portal, and wait until it answers."""
    cluster.daemon("restart", "portal", *daemons)
    wait_for("a healthy portal", lambda: healthy(cluster), 60)


def own_place() -> tuple[str, int]:
    """The project and port of this process's cluster.

    Tests that run in parallel have a cluster each: SLIPWAY_PROJECT="one two" PORT="8081 8082".
    """
    projects = os.environ.get("SLIPWAY_PROJECT", DEMO).split()
    ports = os.environ.get("PORT", "8080").split()
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return projects[worker], int(ports[worker])


def authority() -> str:
    """The CA file of this process's cluster; "" if it has none."""
    file = ROOT / "cluster" / ".cache" / "projects" / own_place()[0] / "ca.crt"
    return str(file) if file.exists() else ""


def tls() -> ssl.SSLContext:
    """A TLS context that trusts the cluster's CA, as a browser with that CA imported would."""
    context = ssl.create_default_context(cafile=authority() or None)
    # A WebSocket client reads in one thread and writes in another, which OpenSSL does not expect:
    # with TLS 1.3 a request was lost while session tickets were read after the handshake.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def gives_shares(cluster: Cluster) -> bool:
    """Whether Slurm accepts GPU jobs: slurmctld refuses them for a second after its start."""
    ask = "sbatch --test-only --gres=shard:1 --mem=100M --wrap true"
    words = ("exec", "--user", "alice", "login", "--", *ask.split())
    return cluster.attempt(*words).returncode == 0


class Cluster:
    """A compose project; everything goes through cluster/ctl.sh."""

    control = CTL

    def __init__(self, project: str, port: int) -> None:
        self.project = project
        self.port = port

    @classmethod
    def from_environment(cls) -> Cluster:
        """The cluster of `make up`, or the one assigned to this process."""
        return cls(*own_place())

    @functools.cached_property
    def url(self) -> str:
        """The portal's base URL."""
        return self.run("portal", "printenv", "SLIPWAY_PUBLIC_URL").strip()

    @functools.cached_property
    def hub_url(self) -> str:
        """JupyterHub's base URL."""
        if self.attempt("address", "hub").returncode != 0:
            raise AssertionError("This cluster has no JupyterHub: start the cluster with make hub.")
        return self.run("portal", "printenv", "SLIPWAY_HUB_URL").strip()

    @functools.cached_property
    def mode(self) -> str:
        """How apps get their origins: "ports" or "subdomains"."""
        return self.run("portal", "printenv", "SLIPWAY_APPS").strip()

    @property
    def secure(self) -> bool:
        """Whether the portal uses https."""
        return self.url.startswith("https:")

    # Machines

    @functools.cached_property
    def portals(self) -> list[str]:
        """The portal's hosts: two on PostgreSQL, one on SQLite."""
        second = self.attempt("address", "portal2").returncode == 0
        return ["portal", "portal2"] if second else ["portal"]

    def ctl(self, *words: str, stdin: str = "", seconds: float = 60, check: bool = True) -> str:
        """Run cluster/ctl.sh and return what it printed."""
        done = self.attempt(*words, stdin=stdin, seconds=seconds)
        if check and done.returncode != 0:
            raise AssertionError(
                f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def attempt(
        self, *words: str, stdin: str = "", seconds: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run cluster/ctl.sh without checking the result; inside a machine, by an open shell."""
        if words[0] in INSIDE:
            machine, argv = INSIDE[words[0]](words[1:])
            enter = (str(self.control), "exec", machine, "--")
            done = SHELLS.run(enter, self.environment(), argv, stdin=stdin, seconds=seconds)
            if done is not None:
                return done
        return subprocess.run(
            [str(self.control), *words],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="backslashreplace",  # names of jobs and files can be any bytes
            timeout=seconds,
            check=False,
            env=self.environment(),
        )

    def environment(self) -> dict[str, str]:
        """The environment variables that the cluster's scripts need."""
        return os.environ | {"COMPOSE_PROJECT_NAME": self.project, "PORT": str(self.port)}

    def run(
        self,
        service: str,
        *argv: str,
        user: str = "",
        stdin: str = "",
        seconds: float = 60,
        check: bool = True,
    ) -> str:
        """Run a command on a machine, as root unless a user is named."""
        who = ["--user", user] if user else []
        words = ["exec", *who, service, "--", *argv]
        return self.ctl(*words, stdin=stdin, seconds=seconds, check=check)

    def shell(self, service: str, script: str, user: str = "", check: bool = True) -> str:
        """Run a shell script on a machine."""
        return self.run(service, "sh", "-c", script, user=user, check=check)

    def daemon(self, action: str, service: str, *names: str) -> None:
        """Start, stop, restart or kill daemons of a machine, one after the other."""
        for name in names:
            self.ctl("daemon", action, service, name)

    @contextmanager
    def ports_free_at_once(self, machine: str) -> Iterator[None]:
        """Have a machine free ports with their connections, not a minute later (TIME_WAIT).

        Another user's program can then listen there at once. Where the kernel does not permit this,
        such a program has to try for that minute.
        """
        setting = "/proc/sys/net/ipv4/tcp_max_tw_buckets"
        inside = ("network", machine, "--", "sh", "-c")
        before = self.attempt(*inside, f"cat {setting} && echo 0 > {setting}").stdout.strip()
        try:
            yield
        finally:
            if before:
                self.attempt(*inside, f"echo {before} > {setting}")

    def log_tail(self, service: str, lines: int = 60) -> str:
        """The last lines logged by a machine's daemons."""
        return "\n".join(self.ctl("logs", service, check=False).splitlines()[-lines:])

    # Accounts

    def password(self, user: str) -> str:
        """A demo account's password."""
        place = ROOT / "cluster"
        file = place / ".demo-passwords"
        if self.project != DEMO:
            file = place / ".cache" / "projects" / self.project / "demo-passwords"
        accounts = dict(line.split(":", 1) for line in file.read_text().splitlines())
        return accounts[user]

    def take_settings(self, text: str) -> None:
        """Have the portal run with these settings, by a restart.

        `slipway apply`, which refuses no request meanwhile, takes several times as long.
        """
        self.ctl("put", "portal", "/etc/slipway/slipway.toml", stdin=text)
        as_owner = ("runuser", "--user", "slipway", "--", "slipway")
        self.run("portal", *as_owner, "render", "haproxy", "--output", "/run/slipway/haproxy.cfg")
        self.run("portal", *as_owner, "reload-proxy")
        restart_portal(self, "web", "worker")

    def forget_attempts(self) -> None:
        """Let every address log in again at once: what earlier tests have tried counts no more."""
        in_database(self, "DELETE FROM attempt")

    def use_up_attempts(self, left: int) -> None:
        """Let each address that has sent a wrong password be able to send only `left` more."""
        hour, accounts, per_account = 3_600_000, 10, 20  # web.logins_per_account
        until = int(time.time() * 1000) + hour - hour // (accounts * per_account) * left
        in_database(self, f"UPDATE attempt SET until = {until} WHERE key LIKE 'address %'")

    # The queue, read without the portal

    def queue(self, user: str = "") -> dict[str, Job]:
        """All jobs in Slurm's queue by name; of one user if given."""
        argv = ["squeue", "--all", "--noheader", "--states=all", "--format=%i|%u|%T|%r|%j"]
        jobs = _jobs(self.run("login", *argv, *([f"--user={user}"] if user else [])))
        return {job.name: job for job in jobs}

    def accounted(self, since: str) -> list[Job]:
        """All jobs in accounting since a time (sacct's format)."""
        argv = ["sacct", "--allusers", "--noheader", "--allocations", "--parsable2"]
        argv += [f"--starttime={since}", "--format=JobIDRaw,User,State,Reason,JobName"]
        return _jobs(self.run("login", *argv))

    def clock(self) -> str:
        """The time on the cluster, in sacct's format."""
        return self.run("login", "date", "+%Y-%m-%dT%H:%M:%S").strip()


def in_database(cluster: Cluster, statement: str) -> str:
    """The result of a statement on the portal's database."""
    user = ("runuser", "--user", "slipway", "--")
    return cluster.run("portal", *user, "/opt/venv/bin/python", "-c", _STATEMENT, statement)


_STATEMENT = """
import os, sqlite3, sys
if url := os.environ.get("SLIPWAY_DATABASE"):
    import psycopg
    db = psycopg.connect(url.replace("+psycopg", "", 1))
else:
    db = sqlite3.connect("/var/lib/slipway/slipway.db", timeout=20)
rows = db.execute(sys.argv[1])
print(rows.fetchall() if rows.description else [])
db.commit()
"""


def _command(words: tuple[str, ...]) -> tuple[str, list[str]]:
    """Split `[--user NAME] MACHINE -- COMMAND…` into machine and command, as ctl.sh does."""
    user = words[1] if words[0] == "--user" else ""
    machine, separator, *argv = words[2:] if user else words
    assert separator == "--", words
    if user:
        who = [f"HOME=/home/{user}", f"USER={user}", f"LOGNAME={user}", "SHELL=/bin/bash"]
        into = ["runuser", "--user", user, "--", "env", *who, "sh", "-c", 'cd && exec "$@"', "sh"]
        argv = [*into, *argv]
    return machine, argv


def _daemon(words: tuple[str, ...]) -> tuple[str, list[str]]:
    """Split `ACTION MACHINE NAME` into machine and command, as ctl.sh does."""
    action, machine, name = words
    if action == "kill":
        return machine, ["sh", "-c", 'kill -9 "$(supervisorctl pid "$1")"', "sh", name]
    command = ["signal", "USR2"] if action == "reload" else [action]
    return machine, ["supervisorctl", *command, name]


def _put(words: tuple[str, ...]) -> tuple[str, list[str]]:
    """Split `MACHINE PATH` into machine and command, as ctl.sh does."""
    machine, path = words
    return machine, ["sh", "-c", 'cat > "$1"', "sh", path]


INSIDE = {"exec": _command, "daemon": _daemon, "put": _put}


def _jobs(text: str) -> list[Job]:
    """Jobs as squeue and sacct print them; a name, the last field, may hold lines and bars."""
    records = re.split(r"^(?=\d[^|\n]*\|[\w-]+\|[A-Z])", text, flags=re.MULTILINE)
    return [Job(*record.removesuffix("\n").split("|", 4)) for record in records if record.strip()]
