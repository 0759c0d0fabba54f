"""Fakes for external systems only: the login node's commands, HAProxy, runners, the clock.

FakeSlurm prints what the real commands printed when tests/recorded/ was created, so that everything
above the transport is the real code.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import dropwhile
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine
from sqlalchemy.util import LRUCache
from sqlmodel import Session as Database
from sqlmodel import col, update

from portal.adapters.catalog import FolderCatalog
from portal.adapters.db.engine import open_database
from portal.adapters.db.tables import SessionRow
from portal.adapters.encryption import Sealer, make_key
from portal.adapters.images.folder import read_inventory
from portal.adapters.monitoring.prometheus import PrometheusMeasures
from portal.adapters.oidc.provider import LocalAccountsFile
from portal.adapters.slurm.client import Slurm
from portal.adapters.slurm.jobs import SlurmJobs
from portal.adapters.slurm.submitter import LoginNodeSubmitter
from portal.adapters.slurm.usage import SlurmMeter
from portal.adapters.ssh.home_files import HomeFiles
from portal.adapters.ssh.transport import Completed
from portal.config import Settings
from portal.config.state import StateSettings
from portal.core.apps.catalog import AppSpec, Catalog, Image
from portal.core.auth.accounts import AccountStatus, Identity
from portal.core.auth.person import Person
from portal.core.cluster.jobs import Estimate
from portal.core.images.inventory import Inventory, Package
from portal.core.interfaces.access import AccessStore
from portal.core.interfaces.sessions import SessionStore
from portal.core.interfaces.status import StatusStore
from portal.core.interfaces.systems import Scheduler
from portal.core.job.description import JobSettings
from portal.core.job.runner_protocol import StartRequest
from portal.core.launch.request import LaunchRequest
from portal.core.monitoring import Room
from portal.core.session.idle import Traffic
from portal.core.session.session import Home, Session
from portal.errors import OutcomeUnknown, Unavailable
from portal.services.apps.apps import Apps
from portal.services.apps.gate import AppGate
from portal.services.apps.proxy import ProxyRoutes
from portal.services.apps.reports import AppReports
from portal.services.assembly import assemble
from portal.services.container import Services
from portal.services.owner_queue import RunForOwner, run_now
from portal.services.session.sessions import Sessions
from portal.services.systems import Monitors, Systems
from portal.wiring import file_server_order, identity_provider, open_stores
from tests.fake_files import FakeFileServers
from tests.paths import ROOT

US = "\x1f"
GUESS = "sbatch: Job 7 to start at 1795186800 using 1 processors on nodes n1 in partition main\n"
PRIVATE_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n"
CONTACT = "sbatch: error: Batch job submission failed: Unable to contact slurm controller\n"


class FakeClock:
    """A clock that advances only on request."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **span: float) -> None:
        """Advance the clock."""
        self.now += timedelta(**span)


@dataclass
class FakeJob:
    """A job in the fake Slurm."""

    id: int
    user: str
    name: str
    script: str
    spec: str
    state: str = "PENDING"
    reason: str = "None"
    node: str = ""
    start: int = 0
    end: int = 0
    code: int = 0
    limit: str = "1:00:00"
    restarts: int = 0
    submitted: int = 1
    tres: str = "cpu=1,mem=1G,node=1,billing=1"
    account: str = "research"
    qos: str = "normal"
    array: int = 0
    tasks: str = ""
    """The number of its array, and its tasks; or those of its heterogeneous job."""
    begin: int | None = None
    """Seconds to its earliest start, as scontrol was told last; None if it never was."""
    het: int = 0
    offset: int = 0
    texts: tuple[str, ...] = ("/home/x", "(null)", "/home/x/slurm-%j.out", "(null)", "(null)")
    """Working directory, command, output, errors and dependency, as squeue prints them."""

    @property
    def shown(self) -> str:
        """The number as accounting shows it."""
        if self.het:
            return f"{self.het}+{self.offset}"
        task = self.tasks if self.tasks.isdecimal() else f"[{self.tasks}]"
        return f"{self.array}_{task}" if self.tasks else str(self.id)

    @property
    def deadline(self) -> int:
        """The end time that squeue shows for a running job: in a year for one without a limit."""
        if self.limit == "UNLIMITED":
            return self.start + 365 * 86400
        hours, minutes, _ = map(int, self.limit.split(":"))
        return self.start + hours * 3600 + minutes * 60 if self.start else 0


@dataclass
class FakeSlurm:
    """A login node: a Transport whose commands act on jobs in memory."""

    clock: FakeClock
    jobs: list[FakeJob] = field(default_factory=list)
    forgotten: set[int] = field(default_factory=set)
    """Jobs that squeue no longer shows (MinJobAge)."""
    folders: set[str] = field(default_factory=set)
    down: bool = False
    accounting_down: bool = False
    lose_answer: bool = False
    refuse: str = ""
    refusal: Completed | None = None
    """sbatch's complete refusal, where one line is not enough."""
    commands: list[str] = field(default_factory=list)
    log: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)
    """Users' files by path; a path that ends in "/" is a folder."""
    steps: dict[int, list[str]] = field(default_factory=dict)
    """What sstat prints about a job's running steps, or else sacct about its record and steps."""
    storage: dict[str, set[str]] = field(default_factory=dict)
    """Names of each user's storage folders."""
    image_files: dict[str, list[str]] = field(default_factory=dict)
    """Names of each user's image files in the storage folders."""
    guess: Completed = field(default_factory=lambda: Completed(0, b"", GUESS))
    """Output of sbatch --test-only."""
    storage_blocked: bool = False
    """Whether something other than a folder is in the place of the storage folders."""
    homes_away: bool = False
    keys: dict[str, int] = field(default_factory=dict)
    """How often each user's SSH key was created."""
    public_keys: dict[str, dict[str, str]] = field(default_factory=dict)
    """The public keys that each user added, by id."""
    per_user: str = "cpu=3,mem=3G"
    """The QOS's MaxTRESPerUser."""
    tracked: str = "cpu,mem,gres/gpu,gres/shard"
    """AccountingStorageTRES."""
    gres: dict[str, str] = field(default_factory=dict)
    """The GRES that sinfo shows for each node."""
    scripts: dict[str, bytes] = field(default_factory=dict)
    """Files that people may submit, by path."""
    stored: dict[str, bytes] = field(default_factory=dict)
    """The scripts of jobs that Slurm has stored, by number."""
    submitted: list[tuple[str, list[str], str]] = field(default_factory=list)
    """User, arguments of `slipway sbatch` and script of each job that was submitted with it."""
    entry: str = "AllowAccounts=ALL AllowQos=ALL QoS=N/A DefaultTime=01:00:00"

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 0,
    ) -> Completed:
        """Execute one command line."""
        words = list(argv)
        if words[0] == "env":
            words = list(dropwhile(re.compile(r"[A-Z_]+=").match, words[1:]))
        if words[0] == "timeout":
            words = words[3:]  # --kill-after=… and the seconds
        line = " ".join(words)
        self.commands.append(f"{user}: {line}")
        if "slipway-sbatch-begins" in line or "stat -L" in line:
            return self._slipway(user, words, stdin.decode())
        if "--test-only" in line:
            return Completed(1, b"", CONTACT) if self.down else self.guess
        if "storage" in line:
            return self._folders(self.storage.setdefault(user, set()), user, words)
        if "sbatch" in line:
            return self._sbatch(user, line, stdin.decode())
        if words[0] == "rm":
            self.folders.discard(words[-1])
            return Completed(0, b"", "")
        if words[0] == "/bin/sh":
            return self._script(user, words, stdin.decode())
        if self.down or (self.accounting_down and words[0] in ("sacct", "sacctmgr")):
            return Completed(1, b"", "error: Unable to contact slurm controller\n")
        act: dict[str, Callable[[list[str]], Completed]] = {
            "squeue": self._squeue,
            "sacct": self._use if "TotalCPU" in line else self._sacct,
            "sstat": self._use,
            "sinfo": self._sinfo,
            "sacctmgr": self._sacctmgr,
            "scontrol": self._scontrol,
            "scancel": self._scancel,
            "id": lambda _words: Completed(0, b"carol\n", ""),
        }
        return act[words[0]](words)

    def _script(self, user: str, words: list[str], text: str) -> Completed:
        if "--dereference" in words[2]:
            return self._file(words[2], words[4], int(words[5]))
        if "SQUEUE_FORMAT2" in words[2]:
            return self._texts(words, text)
        if 'scontrol "$action"' in words[2]:
            return self._each(user, words[4], words[5:])
        return self._in_home(user, " ".join(words), text)

    def _piece(self, line: str) -> bytes:
        """What dd prints of the log, or its size in bytes."""
        if line.endswith(".log"):
            return b"%d\n" % len(self.log)
        found = re.search(r"start=(\d+);", line)
        length = int(line.rpartition(" ")[2])
        return self.log[int(found[1]) :][:length] if found else self.log[-length:]

    def _file(self, script: str, path: str, limit: int) -> Completed:
        """What the commands for any file print."""
        if self.homes_away:
            return Completed(1, b"", "no such home\n")
        if f"{path}/" in self.files:
            return Completed(4, b"", "")
        if path not in self.files:
            return Completed(3, b"", f"stat: cannot statx '{path}': No such file or directory\n")
        data, begin = self.files[path], re.search(r"start=(\d+);", script)
        start = int(begin[1]) if begin else max(len(data) - limit, 0)
        start = start if start <= len(data) else 0
        head = b"%d %d\n" % (len(data), start)
        return Completed(0, head + data[start:][:limit], "")

    def _use(self, words: list[str]) -> Completed:
        number = next(word for word in words if word.startswith("--jobs=")).partition("=")[2]
        lines = self.steps.get(int(number.partition("_")[0]), [])
        error = "" if lines else f"sstat: error: couldn't get steps for job {number}\n"
        return Completed(0 if lines else 1, "\n".join([*lines, ""]).encode(), error)

    def _sbatch(self, user: str, line: str, text: str) -> Completed:
        match = re.search(r"mkdir (\S+/sessions/[0-9a-z-]{32})", line)
        assert match is not None
        if match[1] in self.folders:
            return Completed(1, b"", f"mkdir: cannot create directory '{match[1]}': File exists\n")
        if self.down:
            return Completed(1, b"", CONTACT)
        if self.refusal:
            return self.refusal
        if self.refuse:
            return Completed(1, b"", f"sbatch: error: Batch job submission failed: {self.refuse}\n")
        self.folders.add(match[1])
        spec, _, script = text.partition("\n")
        name = re.search(r"#SBATCH --job-name=(\S+)", script)
        assert name is not None
        job = FakeJob(len(self.jobs) + 1, user, name[1], script, spec)
        self.jobs.append(job)
        if self.lose_answer:
            raise OutcomeUnknown("the connection was cut")
        return Completed(0, f"{job.id}\n".encode(), "")

    def _slipway(self, user: str, words: list[str], script: str) -> Completed:
        """The command `slipway sbatch`, how words[8] says; or reading a script to submit."""
        if "stat -L" in words[2]:
            found = self.scripts.get(words[-1])
            return Completed(3, b"", "") if found is None else Completed(0, found, "")
        begin = b"\nslipway-sbatch-begins\n"
        if self.down:
            return Completed(1, begin, CONTACT)
        if self.refuse:
            said = f"sbatch: error: Batch job submission failed: {self.refuse}\n"
            return Completed(1, begin, said)
        if words[8] == "--test-only":
            return Completed(0, begin, self.guess.stderr)
        job = FakeJob(len(self.jobs) + 1, user, "sbatch", script, "")
        self.jobs.append(job)
        self.submitted.append((user, words[9:], script))
        if self.lose_answer:
            raise OutcomeUnknown("the connection was cut")
        return Completed(0, begin + f"{job.id}\n".encode(), "")

    def _folders(self, mine: set[str], user: str, words: list[str]) -> Completed:
        script = words[-1]
        if "-name '[!.]*.sif'" in script:
            place, own = f"/home/{user}/storage", self.image_files.get(user, [])
            names = ["", place, *(f"1.0 5242880 ./{name}" for name in own), ""]
            names += [f"1.0 5242880 {path}" for path in self.image_files.get("", [])]  # the site's
            return Completed(0, "".join(f"{name}\0" for name in names).encode(), "")
        if "mkdir" in script and self.storage_blocked:
            return Completed(3, b"", "mkdir: cannot create directory 'storage': File exists\n")
        if match := re.search(r"mkdir -- storage/(.+) \|\| exit", script):
            (name,) = shlex.split(match[1])
            if name in mine:
                return Completed(4, b"", "mkdir: cannot create directory 'x': File exists\n")
            mine.add(name)
            return Completed(0, f"\0/home/{user}/storage\0".encode(), "")
        if match := re.search(r"for name in (.*); do", script):
            names = ["", *(name for name in shlex.split(match[1]) if name not in mine)]
        else:
            names = ["", f"/home/{user}", f"/home/{user}/storage", *sorted(mine)]
        return Completed(0, "".join(f"{name}\0" for name in names).encode(), "")

    def _in_home(self, user: str, line: str, stdin: str) -> Completed:
        if "spec.new" in line:
            return self._prepare(line, stdin)
        if self.homes_away:
            return Completed(1, b"", "no such home\n")
        if re.search(r"for key in \S+/own/|/own/\w+\.pub", line):
            return self._own_keys(user, line)
        if found := re.search(r"/sessions/([0-9a-f]{32})/(\S+) (\d+)$", line):
            data = self._session_file(user, found[1], found[2])
            return Completed(0, data[: int(found[3])], "")
        if "ssh-keygen" not in line:
            return Completed(0, self._piece(line), "")
        if "ln " not in line or user not in self.keys:
            self.keys[user] = self.keys.get(user, 0) + 1
        middle = f"{user}{self.keys[user]}"
        return Completed(0, PRIVATE_KEY.format(middle).encode(), "")

    def _session_file(self, user: str, session: str, name: str) -> bytes:
        """A file in a session's folder: of a waiting job, or of its runner."""
        written = self.files.get(f"/home/{user}/.slipway/sessions/{session}/{name}")
        if written is not None or name != "spec.json":
            return written or b""
        mine = [j for j in self.jobs if (j.user, j.name, j.state) == (user, session, "PENDING")]
        return mine[0].spec.encode() if mine else b""

    def _own_keys(self, user: str, line: str) -> Completed:
        mine = self.public_keys.setdefault(user, {})
        if added := re.search(r"printf '%s\\n' '?([^\n']+?)'? > \S+/own/(\w+)\.pub", line):
            mine[added[2]] = added[1]
        elif removed := re.search(r"rm -f \S+/own/(\w+)\.pub", line):
            mine.pop(removed[1], None)
        return Completed(0, "".join(f"{each}\n" for each in mine.values()).encode(), "")

    def _prepare(self, line: str, spec: str) -> Completed:
        if self.homes_away:
            return Completed(1, b"", "no such home\n")
        match = re.search(r"(\S+/sessions/([0-9a-f]{32}))", line)
        assert match is not None
        self.folders.add(match[1])
        next(job for job in self.jobs if job.name == match[2]).spec = spec
        return Completed(0, b"", "")

    def _selected(self, words: list[str]) -> list[FakeJob]:
        options = dict(word.partition("=")[::2] for word in words if word.startswith("--"))
        ids = options.get("--jobs", "").split(",") if "--jobs" in options else None
        return [
            job
            for job in self.jobs
            if options.get("--name", job.name) == job.name
            and options.get("--user", job.user) == job.user
            and (ids is None or str(job.id) in ids)
        ]

    def _squeue(self, words: list[str]) -> Completed:
        lines = [
            US.join(
                map(
                    str,
                    [job.id, job.user, job.state, job.reason, job.node, job.submitted, job.start,
                     job.end or job.deadline, f"{job.code}:0", "main", 4_000_000_000 - job.id,
                     job.account, job.qos,
                     job.tres, job.limit, job.restarts, job.array or job.id,
                     job.tasks or "N/A", job.het or "N/A", job.offset if job.het else "N/A", ""],
                )
            )
            for job in self._selected(words)
            if job.id not in self.forgotten
        ]  # fmt: skip
        return Completed(0, "\n".join([*lines, ""]).encode(), "")

    def _texts(self, words: list[str], format_line: str) -> Completed:
        if self.down:
            return Completed(1, b"", "error: Unable to contact slurm controller\n")
        separator = re.search(r"<[0-9a-f]{32}>", format_line)
        assert separator is not None
        records = [
            separator[0].join([str(job.id), job.name, *job.texts, "\n"])
            for job in self._selected(words)
            if job.id not in self.forgotten
        ]
        return Completed(0, "".join(records).encode(), "")

    def _each(self, user: str, action: str, targets: list[str]) -> Completed:
        """What the shell's loop over jobs prints."""
        lines = []
        for target in targets:
            number = int(target.partition("_")[0])
            mine = [j for j in self.jobs if number in (j.id, j.array) and j.user == user]
            for job in mine:
                self._apply(action, job)
            error = "" if mine else "Invalid job id specified for job " + target
            lines.append(f"{target} {0 if mine else 1} {error}\n")
        return Completed(0, "".join(lines).encode(), "")

    def _apply(self, action: str, job: FakeJob) -> None:
        if action == "requeue" and job.state == "RUNNING":
            self.requeue(job)
        elif job.state == "PENDING":
            job.reason = "JobHeldUser" if action == "hold" else "None"

    def _told(self, words: list[str]) -> Completed:
        """What users wrote, as accounting has it."""
        delimiter = words[4].removeprefix("--delimiter=")
        records = [
            delimiter.join([str(job.id), job.name, job.texts[0], job.texts[2], "", "\n"])
            for job in self._selected(words)
        ]
        return Completed(0, "".join(records).encode(), "")

    def _facts(self, words: list[str]) -> Completed:
        """Whole records of accounting, but for what users wrote."""
        records = [
            US.join(
                map(
                    str,
                    [job.id, job.user, job.state, job.node, job.submitted, job.start, job.end,
                     f"{job.code}:0", job.shown, "main", job.account, job.qos, job.tres,
                     job.tres, 60, 5],
                )
            )
            for job in self._selected(words)
        ]  # fmt: skip
        return Completed(0, "\n".join([*records, ""]).encode(), "")

    def _sacct(self, words: list[str]) -> Completed:
        if "--parsable" in words:
            return self._told(words)
        if "ReqTRES" in words[5]:
            return self._facts(words)
        lines = [
            US.join(
                map(
                    str,
                    [job.id, job.user, job.state, job.node, 1, job.start, job.end, f"{job.code}:0"],
                )
            )
            for job in self._selected(words)
        ]
        return Completed(0, "\n".join([*lines, ""]).encode(), "")

    def _sinfo(self, words: list[str]) -> Completed:
        if "Features_act" in words[-1]:
            return Completed(
                0, f"n1{US}main*{US}(null){US}\nn2{US}main*{US}(null){US}\n".encode(), ""
            )
        if "NodeHost" in words[-1]:
            lines = [
                US.join([node, "main*", "4", "3500", "idle", self.gres.get(node, "(null)"), ""])
                for node in ("n1", "n2")
            ]
            return Completed(0, "\n".join([*lines, ""]).encode(), "")
        lines = [
            US.join(["main*", "up", "4", "3500", "8:00:00", self.gres.get(node, "(null)"), ""])
            for node in ("n1", "n2")
        ]
        return Completed(0, "\n".join([*lines, ""]).encode(), "")

    def _sacctmgr(self, words: list[str]) -> Completed:
        lines: dict[str, list[list[str]]] = {
            "assoc": [
                ["slipway", "research", "", "", "root", "normal", "normal", *[""] * 10],
                *(
                    ["slipway", "research", user, "", "", "normal", "normal", *[""] * 10]
                    for user in ("alice", "bob", "admin", "carol")
                ),
            ],
            "qos": [["normal", "", "", "", "", self.per_user, *[""] * 12]],
            "account": [["research", "demo"]],
            "user": [[user, "research"] for user in ("alice", "bob", "admin", "carol")],
        }
        if words[-1] == "format=Name,Descr":
            return Completed(0, b"normal|Normal QOS default\n", "")
        found = lines[words[words.index("show") + 1]]
        return Completed(0, "\n".join([*map("|".join, found), ""]).encode(), "")

    def _scontrol(self, words: list[str]) -> Completed:
        if words[1] == "write":
            stored = self.stored.get(words[-2])
            error = "job script retrieval failed: Invalid job id specified\n"
            return Completed(1, b"", error) if stored is None else Completed(0, stored, "")
        if words[1] == "release":
            for job in self.jobs:
                job.reason = "None" if str(job.id) == words[-1] else job.reason
            return Completed(0, b"", "")
        if words[1] == "update":
            job = next(job for job in self.jobs if f"JobId={job.shown}" in words)
            if words[-1].startswith("StartTime=now+"):
                job.begin = int(words[-1].removeprefix("StartTime=now+"))
                return Completed(0, b"", "")
            minutes = int(words[-1].removeprefix("TimeLimit="))
            job.limit = f"{minutes // 60}:{minutes % 60:02}:00"
            return Completed(0, b"", "")
        if words[-1] == "partition":
            return Completed(0, f"PartitionName=main {self.entry}\n".encode(), "")
        if words[-1] == "reservation":
            return Completed(0, b"No reservations in the system\n", "")
        if "assoc_mgr" in words:
            return Completed(0, b"Current Association Manager state\n", "")
        text = "AccountingStorageEnforce = associations,limits,qos\nClusterName = slipway\n"
        text += "AccountingStorageType = accounting_storage/slurmdbd\n"
        text += "ProctrackType = proctrack/cgroup\nTaskPlugin = task/cgroup,task/affinity\n"
        text += f"AccountingStorageTRES = {self.tracked}\n"
        return Completed(0, text.encode(), "")

    def _scancel(self, words: list[str]) -> Completed:
        for job in self.jobs:
            if str(job.id) in words and job.state in ("PENDING", "RUNNING"):
                self.finish(job, "CANCELLED")
        return Completed(0, b"", "")

    def start(self, job: FakeJob, node: str = "n1") -> None:
        """The job starts on a node."""
        job.state, job.node, job.start = "RUNNING", node, int(self.clock().timestamp())

    def requeue(self, job: FakeJob) -> None:
        """The job is requeued, as by an administrator."""
        job.state, job.reason, job.node, job.start = "PENDING", "BeginTime", "", 0
        job.restarts += 1

    def finish(self, job: FakeJob, state: str, code: int = 0) -> None:
        """The job ends."""
        job.state, job.code, job.end = state, code, int(self.clock().timestamp())


class FakeRoutes:
    """HAProxy's route map."""

    def __init__(self) -> None:
        self.map: dict[str, str] = {}
        self.alive = False
        self.sent: dict[str, Traffic] = {}
        self.background: list[str] = []
        self.paths: dict[str, str] = {}
        self.unreachable = False

    def traffic(self) -> dict[str, Traffic]:
        """Traffic counted from browsers."""
        return dict(self.sent)

    def set_background_requests(self, paths: Collection[str]) -> None:
        """Set the requests that do not count as use."""
        self.background = list(paths)

    def exclusively(self) -> AbstractContextManager[None]:
        """Nobody else changes it."""
        return nullcontext()

    def add(self, key: str, target: str) -> None:
        """Add a route."""
        self.map[key] = target

    def add_path(self, path: str, key: str) -> None:
        """Add a path of JupyterHub's."""
        self.paths[path] = key

    def set_paths(self, paths: Mapping[str, str]) -> None:
        """Set all paths of JupyterHub's."""
        self.paths = dict(paths)

    def remove(self, *keys: str) -> None:
        """Remove routes."""
        if self.unreachable:
            raise Unavailable("the proxy does not answer")
        for key in keys:
            self.map.pop(key, None)

    def is_lost(self) -> bool:
        """Whether HAProxy lost its map by a restart."""
        return not self.alive

    def entries(self) -> dict[str, str]:
        """The current routes."""
        return dict(self.map)

    def fill(self, routes: Mapping[str, str]) -> None:
        """Replace the map after a restart."""
        self.map, self.alive = dict(routes), True


class FakeRunners:
    """Runners that record their requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, StartRequest]] = []
        self.stopped: list[str] = []
        self.unreachable = False

    def start_app(self, session: Session, request: StartRequest) -> None:
        """Record a start request."""
        if self.unreachable:
            raise Unavailable("the node does not answer")
        self.requests.append((session.id, request))

    def stop_app(self, session: Session, app: str) -> None:
        """Record a stop request."""
        if self.unreachable:
            raise Unavailable("the node does not answer")
        self.stopped.append(app)


class FakeAccounts:
    """The login node's account database."""

    def __init__(self) -> None:
        self.removed: set[str] = set()
        self.refused: set[str] = set()
        self.passwords: dict[str, str] = {}
        self.identities = {
            "alice": Identity(1001, frozenset({"alice", "research"})),
            "bob": Identity(1002, frozenset({"bob"})),
            "admin": Identity(1003, frozenset({"admin"})),
            "root": Identity(0, frozenset({"root", "research"})),
        }
        self.silent = False
        self.asked: list[str] = []

    def missing(self, names: Collection[str]) -> set[str]:
        """The accounts that were removed."""
        if self.silent:
            raise Unavailable("the login node does not answer")
        return set(names) & self.removed

    def identity(self, user: str) -> Identity | None:
        """The account's number and groups."""
        self.asked.append(user)
        if self.silent:
            raise Unavailable("the login node does not answer")
        return None if user in self.removed else self.identities.get(user)

    def standing(self, user: str) -> AccountStatus:
        """Whether the account may log in, and its password state."""
        self.asked.append(user)
        if self.silent:
            raise Unavailable("the login node does not answer")
        return AccountStatus(user not in self.refused, self.passwords.get(user, "P"))


class FakeCertificates:
    """A CA that signs every request."""

    def sign_gateway(self, session: str, request_pem: str) -> str:
        """Sign a request."""
        return f"certificate of {session}"

    def issue_gateway(self, id: str) -> str:
        """A key with its certificate."""
        return f"key and certificate of {id}"

    def client_ca(self) -> str:
        """PEM."""
        return "client ca"

    def server_ca(self) -> str:
        """PEM."""
        return "server ca"


TEMPLATE = "#!/bin/bash\n#SBATCH --job-name={{ job.session }}\n"

APPS = {
    "jupyterlab": AppSpec(name="jupyterlab", title="JupyterLab", path="/lab", files="/lab/tree",
                          ready="/api", script="jupyter lab"),
    "notebook": AppSpec(name="notebook", title="Notebook", path="/tree", shares="jupyterlab"),
    "terminal": AppSpec(name="terminal", title="Terminal", script="ttyd"),
    "board": AppSpec(name="board", title="Board", script="board", public=True),
    "jupyterhub": AppSpec(name="jupyterhub", title="JupyterHub", kind="hub", ready="/api",
                          detect=("jupyterhub-singleuser",), script="jupyterhub-singleuser"),
    "any": AppSpec(name="any", title="Any web app", script="any", asks="Its command"),
}  # fmt: skip

CATALOG = Catalog(
    apps=APPS,
    images=(
        Image(environment="python", version="3.13", path="/images/python/3.13/image.sif",
              title="Python", apps=("jupyterlab", "notebook", "terminal", "board", "any")),
        Image(environment="python", version="3.12", path="/images/python/3.12/image.sif",
              title="Python", apps=("terminal",)),
    ),
)  # fmt: skip

INVENTORIES = {
    ("python", "3.13"): Inventory(
        environment="python", version="3.13", title="Python", sources="5" * 64, origin="trixie",
        arguments={"GPU": "no"}, architecture="amd64", system="Debian GNU/Linux 13 (trixie)",
        packages=(
            Package("deb", "libc6", "2.41-12"), Package("deb", "python3", "3.13.5-1"),
            Package("pip", "ipykernel", "6.30.1"), Package("pip", "numpy", "2.3.1"),
        ),
        digest="d" * 64, size=300 << 20, built=datetime(2026, 11, 2, 3, 4, tzinfo=UTC),
        apptainer="1.4.5",
    ),
}  # fmt: skip
"""What is inside the images; nothing wrote it down for the others."""

ROOMY = Room(free=50 << 30, total=100 << 30)
"""A disk that is half full."""

CODES: dict[str, str] = {}
"""What users need besides their passwords."""


def check_password(user: str, password: str, code: str = "") -> str:
    """The login node's check."""
    right = PASSWORDS.get(user) == password and CODES.get(user, code) == code
    return user if right else ""


PASSWORDS = {"alice": "wonderland", "bob": "builder", "admin": "root-of-all"}


class WorkerTasks:
    """The worker's periodic tasks, each run once per call."""

    def __init__(self, services: Services) -> None:
        self.poll = services.reconciler.poll
        self.follow = services.job_follower.follow
        self.read_texts = services.job_follower.read_texts
        self.settle = services.job_follower.settle
        self.catch_up = services.job_follower.catch_up
        self.forget = services.job_follower.forget
        self.read_partitions = services.cluster_reader.read_partitions
        self.read_limits = services.cluster_reader.read_limits
        self.retry_app_starts = services.housekeeping.retry_app_starts
        self.prepare_requeued = services.housekeeping.prepare_requeued
        self.clean = services.housekeeping.clean
        self.follow_maintenance = services.maintenance_follower.follow
        self.ask_who_cancelled = services.housekeeping.ask_who_cancelled


@dataclass
class World:
    """A complete portal over fakes of the external systems."""

    clock: FakeClock
    slurm: FakeSlurm
    routes: FakeRoutes
    runners: FakeRunners
    accounts: FakeAccounts
    engine: Engine
    systems: Systems
    services: Services
    file_servers: FakeFileServers

    @property
    def store(self) -> SessionStore:
        """The session store."""
        return self.systems.stores.sessions

    @property
    def status(self) -> StatusStore:
        """The store of Slurm's last status."""
        return self.systems.stores.status

    @property
    def access_store(self) -> AccessStore:
        """The store of open apps, tickets and grants."""
        return self.systems.stores.access

    @property
    def scheduler(self) -> Scheduler:
        """Slurm's commands over the fake login node."""
        return self.systems.scheduler

    @property
    def sessions(self) -> Sessions:
        """Use cases: read and end sessions."""
        return self.services.sessions

    @property
    def apps(self) -> Apps:
        """Use cases: open and close apps."""
        return self.services.apps

    @property
    def gate(self) -> AppGate:
        """Handles browsers at the apps' origins."""
        return self.services.gate

    @property
    def proxy(self) -> ProxyRoutes:
        """Syncs HAProxy's route map."""
        return self.services.proxy

    @property
    def reports(self) -> AppReports:
        """Handles the runners' app reports."""
        return self.services.app_reports

    @property
    def worker(self) -> WorkerTasks:
        """The worker's tasks."""
        return WorkerTasks(self.services)

    def force(self, session: str, **columns: object) -> Session:
        """Write any columns of a session, including its state, bypassing the portal."""
        with Database(self.engine) as db:
            db.exec(update(SessionRow).where(col(SessionRow.id) == session).values(**columns))
            db.commit()
        found = self.store.get(session)
        assert found is not None
        return found

    def launch(self, person: Person, request: LaunchRequest, key: str | None = None) -> Session:
        """Launch a single session."""
        return self.launch_all(person, request, key)[0]

    def estimate(self, person: Person, request: LaunchRequest) -> Estimate | None:
        """Slurm's estimate for a request."""
        return self.services.estimates.estimate(self.services.launcher.plan(person, request))

    def launch_all(
        self, person: Person, request: LaunchRequest, key: str | None = None
    ) -> list[Session]:
        """Launch as many sessions as requested."""
        launcher = self.services.launcher
        return launcher.launch(launcher.plan(person, request, key))


@cache
def empty_database() -> tuple[bytes, Engine]:
    """An SQLite file with all tables, and its engine; once, since it takes longer than a test."""
    with TemporaryDirectory() as directory:
        file = Path(directory) / "slipway.db"
        engine = open_database(f"sqlite:///{file}")
        engine._compiled_cache = LRUCache(5000)
        SessionRow.metadata.create_all(engine)
        engine.dispose()
        return file.read_bytes(), engine


def fresh_database(state: StateSettings) -> Engine:
    """The settings' database, which is made if it is missing."""
    engine = open_database(state.database_url)
    if state.database:
        SessionRow.metadata.create_all(engine)
        return engine
    content, first = empty_database()
    file = Path(state.directory) / "slipway.db"
    if not file.exists():
        file.write_bytes(content)
    # Statements are compiled once for all tests instead of for each database.
    engine.dialect, engine._compiled_cache = first.dialect, first._compiled_cache
    return engine


def _inventory(image: Image) -> Inventory | None:
    known = INVENTORIES.get((image.environment, image.version))
    return known or read_inventory(Path(image.path))


def make_world(
    settings: Settings,
    routes: FakeRoutes | None = None,
    run_for_owner: RunForOwner = run_now,
    images: Path | None = None,
) -> World:
    """Build a world; the database is real, SQLite in the settings' state directory.

    `images`: a folder with the site's images in the place of CATALOG's.
    """
    clock, accounts = FakeClock(), FakeAccounts()
    slurm, runners = FakeSlurm(clock), FakeRunners()
    measures = PrometheusMeasures()
    file_servers = FakeFileServers(Path(settings.state.directory))
    routes = routes or FakeRoutes()
    engine = fresh_database(settings.state)
    if not settings.state.keys.exists():
        make_key(settings.state.keys)
    systems = Systems(
        stores=open_stores(engine, Sealer(settings.state.keys)),
        catalog=FolderCatalog((str(ROOT / "apps"),), str(images)) if images else lambda: CATALOG,
        inventory=_inventory,
        scheduler=Slurm(slurm, "slipway", ".slipway", 20, settings.slurm.operator),
        job_meter=SlurmMeter(slurm, "slipway"),
        slurm_jobs=SlurmJobs(slurm, "slipway", 20),
        submitter=LoginNodeSubmitter(slurm, "/usr/local/bin/slipway", 20),
        files=HomeFiles(slurm, ".slipway", "storage"),
        file_servers=file_servers,
        file_server_order=partial(file_server_order, settings),
        certificates=FakeCertificates(),
        routes=routes,
        machine="machine",
        runners=runners,
        resolve=lambda node: {"n1": "10.0.0.1", "n2": "10.0.0.2"}.get(node, "127.0.0.1"),
        accounts=accounts,
        authenticate=check_password,
        batch_settings_file=None,
        job_settings=JobSettings(
            TEMPLATE,
            "/srv/toolkit.sqsh",
            ".slipway",
            "https://portal:8443",
            (0, 0),
            10,
            "storage",
            home=Home(settings.sessions.home),
            own_images=settings.images.rules(settings.batch.command),
        ),
        monitors=Monitors(
            measures=measures,
            exposition=measures.exposition,
            disk=lambda folder: ROOMY,
            expiries=lambda: {"server": clock.now + timedelta(days=300)},
        ),
        clock=clock,
        identity_provider=identity_provider(settings, clock),
        accounts_file=LocalAccountsFile(settings.oidc.accounts_file),
    )
    services = assemble(settings, systems, run_for_owner)
    return World(clock, slurm, routes, runners, accounts, engine, systems, services, file_servers)
