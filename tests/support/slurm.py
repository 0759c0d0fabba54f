"""Slurm for unit tests: the login node's commands, which act on jobs in memory.

They print what the real ones printed when tests/recorded/ was created, so that everything above
the transport is the real code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.adapters.ssh.transport import Completed
from portal.errors import OutcomeUnknown
from tests.support.clock import FakeClock
from tests.support.login_node import Call, LoginNode

GUESS = "sbatch: Job 7 to start at 1795186800 using 1 processors on nodes n1 in partition main\n"
CONTACT = "sbatch: error: Batch job submission failed: Unable to contact slurm controller\n"
NODES = ("n1", "n2")
USERS = ("alice", "bob", "admin", "carol")


@dataclass
class FakeJob:
    """A job in the fake Slurm."""

    id: int
    user: str
    name: str
    script: str
    spec: str
    """The runner's specification, as the last command has left it in the session's folder."""
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

    @property
    def _common(self) -> dict[str, Any]:
        return {
            "State": self.state,
            "NodeList": self.node,
            "Partition": "main",
            "Account": self.account,
            "QOS": self.qos,
            "WorkDir": self.texts[0],
        }

    @property
    def in_queue(self) -> dict[str, Any]:
        """squeue's fields."""
        return self._common | {
            "JobID": self.id,
            "UserName": self.user,
            "Reason": self.reason,
            "SubmitTime": self.submitted,
            "StartTime": self.start,
            "EndTime": self.end or self.deadline,
            "exit_code": f"{self.code}:0",
            "PriorityLong": 4_000_000_000 - self.id,
            "tres-alloc": self.tres,
            "TimeLimit": self.limit,
            "RestartCnt": self.restarts,
            "ArrayJobID": self.array or self.id,
            "ArrayTaskID": self.tasks or "N/A",
            "HetJobID": self.het or "N/A",
            "HetJobOffset": self.offset if self.het else "N/A",
            "Name": self.name,
            "Command": self.texts[1],
            "STDOUT": self.texts[2],
            "STDERR": self.texts[3],
            "Dependency": self.texts[4],
        }

    @property
    def in_accounting(self) -> dict[str, Any]:
        """sacct's fields."""
        return self._common | {
            "JobIDRaw": self.id,
            "JobID": self.shown,
            "User": self.user,
            "Submit": self.submitted,
            "Start": self.start,
            "End": self.end,
            "ExitCode": f"{self.code}:0",
            "AllocTRES": self.tres,
            "ReqTRES": self.tres,
            "TimelimitRaw": 60,
            "Priority": 5,
            "JobName": self.name,
            "StdOut": self.texts[2],
            "StdErr": "",
        }


@dataclass
class FakeSlurm(LoginNode):
    """A login node with Slurm's commands."""

    clock: FakeClock
    jobs: list[FakeJob] = field(default_factory=list)
    forgotten: set[int] = field(default_factory=set)
    """Jobs that squeue no longer shows (MinJobAge)."""
    down: bool = False
    accounting_down: bool = False
    lose_answer: bool = False
    refuse: str = ""
    refusal: Completed | None = None
    """sbatch's complete refusal, where one line is not enough."""
    steps: dict[int, list[str]] = field(default_factory=dict)
    """What sstat prints about a job's running steps, or else sacct about its record and steps."""
    guess: Completed = field(default_factory=lambda: Completed(0, b"", GUESS))
    """Output of sbatch --test-only."""
    per_user: str = "cpu=3,mem=3G"
    """The QOS's MaxTRESPerUser."""
    tracked: str = "cpu,mem,gres/gpu,gres/shard"
    """AccountingStorageTRES."""
    gres: dict[str, str] = field(default_factory=dict)
    """The GRES that sinfo shows for each node."""
    stored: dict[str, bytes] = field(default_factory=dict)
    """The scripts of jobs that Slurm has stored, by number."""
    submitted: list[tuple[str, list[str], str]] = field(default_factory=list)
    """User, arguments of `slipway sbatch` and script of each job that was submitted with it."""
    entry: str = "AllowAccounts=ALL AllowQos=ALL QoS=N/A DefaultTime=01:00:00"
    _log: bytes = field(default=b"", init=False)

    def __post_init__(self) -> None:
        self.programs |= {
            "id": lambda _call: Completed(0, b"carol\n", ""),
            "sacct": self._sacct,
            "sacctmgr": self._sacctmgr,
            "sbatch": self._sbatch,
            "scancel": self._scancel,
            "scontrol": self._scontrol,
            "sinfo": self._sinfo,
            "slipway": self._slipway,
            "squeue": self._squeue,
            "sstat": self._steps,
        }

    def _execute(self, user: str, argv: list[str], stdin: bytes) -> Completed:
        done = super()._execute(user, argv, stdin)
        for job in self.jobs:
            file = _session(job, "spec.json")
            if job.user == user and file in self.files:
                job.spec = self.files[file].decode().rstrip("\n")
        return done

    @property
    def folders(self) -> set[str]:
        """The folders of all sessions."""
        found = self.root.glob("home/*/.slipway/sessions/*")
        return {f"/{folder.relative_to(self.root)}" for folder in found}

    @property
    def storage(self) -> dict[str, set[str]]:
        """Names of each user's storage folders."""
        homes = {path.name: path / "storage" for path in self.root.glob("home/*")}
        return {
            user: {path.name for path in folder.iterdir()}
            for user, folder in homes.items()
            if folder.is_dir()
        }

    @property
    def log(self) -> bytes:
        """The log of every session."""
        return self._log

    @log.setter
    def log(self, content: bytes) -> None:
        self._log = content
        for job in self.jobs:
            self._write_log(job)

    def _write_log(self, job: FakeJob) -> None:
        self.files[f"/home/{job.user}/.slipway/logs/{job.name}.log"] = self._log

    def _refusal(self) -> Completed | None:
        if self.down:
            return Completed(1, b"", CONTACT)
        if self.refuse:
            return Completed(1, b"", f"sbatch: error: Batch job submission failed: {self.refuse}\n")
        return None

    def _sbatch(self, call: Call) -> Completed:
        if "--test-only" in call.words:
            return Completed(1, b"", CONTACT) if self.down else self.guess
        if refused := self.refusal or self._refusal():
            return refused
        script = call.stdin.decode()
        name = re.search(r"#SBATCH --job-name=(\S+)", script)
        assert name is not None
        job = FakeJob(len(self.jobs) + 1, call.user, name[1], script, "")
        job.spec = self.files[_session(job, "spec.json")].decode().rstrip("\n")
        self._write_log(job)
        return self._add(job)

    def _add(self, job: FakeJob) -> Completed:
        self.jobs.append(job)
        if self.lose_answer:
            raise OutcomeUnknown("the connection was cut")
        return Completed(0, f"{job.id}\n".encode(), "")

    def _slipway(self, call: Call) -> Completed:
        """The command `slipway sbatch`."""
        command, how, *words = call.words[1:]
        assert command == "sbatch"
        if refused := self._refusal():
            return refused
        if how == "--test-only":
            return Completed(0, b"", self.guess.stderr)
        script = call.stdin.decode()
        self.submitted.append((call.user, words, script))
        return self._add(FakeJob(len(self.jobs) + 1, call.user, "sbatch", script, ""))

    def _unreachable(self, call: Call) -> Completed | None:
        if self.down or (self.accounting_down and call.words[0] in ("sacct", "sacctmgr")):
            return Completed(1, b"", "error: Unable to contact slurm controller\n")
        return None

    def _steps(self, call: Call) -> Completed:
        if refused := self._unreachable(call):
            return refused
        number = call.options["--jobs"]
        lines = self.steps.get(int(number.partition("_")[0]), [])
        error = "" if lines else f"sstat: error: couldn't get steps for job {number}\n"
        return Completed(0 if lines else 1, "\n".join([*lines, ""]).encode(), error)

    def _selected(self, options: Mapping[str, str]) -> Iterator[FakeJob]:
        ids = options["--jobs"].split(",") if "--jobs" in options else None
        for job in self.jobs:
            if (
                job.name in options.get("--name", job.name).split(",")
                and options.get("--user", job.user) == job.user
                and (ids is None or str(job.id) in ids)
            ):
                yield job

    def _squeue(self, call: Call) -> Completed:
        if refused := self._unreachable(call):
            return refused
        jobs = [job for job in self._selected(call.options) if job.id not in self.forgotten]
        return _lines(call.squeue_format or call.options["--Format"], [j.in_queue for j in jobs])

    def _sacct(self, call: Call) -> Completed:
        if refused := self._unreachable(call):
            return refused
        fields, delimiter = call.options["--format"].split(","), call.options["--delimiter"]
        if "TotalCPU" in fields:
            return self._steps(call)
        end = f"{delimiter}\n" if "--parsable" in call.options else "\n"
        lines = [
            delimiter.join(str(job.in_accounting[name]) for name in fields) + end
            for job in self._selected(call.options)
        ]
        return Completed(0, "".join(lines).encode(), "")

    def _sinfo(self, call: Call) -> Completed:
        if refused := self._unreachable(call):
            return refused
        nodes = [
            {
                "NodeHost": node,
                "Partition": "main*",
                "Available": "up",
                "CPUs": 4,
                "Memory": 3500,
                "Time": "8:00:00",
                "StateComplete": "idle",
                "Gres": self.gres.get(node, "(null)"),
                "Features_act": "(null)",
                "Reason": "none",
            }
            for node in NODES
        ]
        return _lines(call.options["--Format"], nodes)

    def _sacctmgr(self, call: Call) -> Completed:
        if refused := self._unreachable(call):
            return refused
        everyone = {"Cluster": "slipway", "Account": "research", "QOS": "normal"}
        everyone["DefaultQOS"] = "normal"
        tables: dict[str, list[dict[str, str]]] = {
            "assoc": [
                everyone | {"ParentName": "root"},
                *(everyone | {"User": user} for user in USERS),
            ],
            "qos": [
                {"Name": "normal", "Descr": "Normal QOS default", "MaxTRESPerUser": self.per_user}
            ],
            "account": [{"Account": "research", "Descr": "demo"}],
            "user": [{"User": user, "DefaultAccount": "research"} for user in USERS],
        }
        rows = tables[call.words[call.words.index("show") + 1]]
        (fields,) = (word[7:].split(",") for word in call.words if word.startswith("format="))
        lines = ["|".join(row.get(name, "") for name in fields) for row in rows]
        return Completed(0, "\n".join([*lines, ""]).encode(), "")

    def _scontrol(self, call: Call) -> Completed:
        if refused := self._unreachable(call):
            return refused
        words = [word for word in call.words[1:] if not word.startswith("--")]
        return {
            "write": self._write_script,
            "show": self._show,
            "update": self._update,
        }.get(words[0], self._change)(call.user, words)

    def _write_script(self, _user: str, words: list[str]) -> Completed:
        stored = self.stored.get(words[2])
        error = "job script retrieval failed: Invalid job id specified\n"
        return Completed(1, b"", error) if stored is None else Completed(0, stored, "")

    def _change(self, user: str, words: list[str]) -> Completed:
        """Hold, release or requeue a job, an array or one of its tasks."""
        action, target = words
        number = int(target.partition("_")[0])
        found = [job for job in self.jobs if number in (job.id, job.array) and job.user == user]
        for job in found:
            if action == "requeue" and job.state == "RUNNING":
                self.requeue(job)
            elif job.state == "PENDING":
                job.reason = "JobHeldUser" if action == "hold" else "None"
        error = "" if found else f"Invalid job id specified for job {target}\n"
        return Completed(0 if found else 1, b"", error)

    def _update(self, _user: str, words: list[str]) -> Completed:
        changes = dict(word.partition("=")[::2] for word in words[1:])
        job = next(job for job in self.jobs if job.shown == changes["JobId"])
        if "StartTime" in changes:
            job.begin = int(changes["StartTime"].removeprefix("now+"))
        if "TimeLimit" in changes:
            minutes = int(changes["TimeLimit"])
            job.limit = f"{minutes // 60}:{minutes % 60:02}:00"
        return Completed(0, b"", "")

    def _show(self, _user: str, words: list[str]) -> Completed:
        config = (
            "AccountingStorageEnforce = associations,limits,qos\nClusterName = slipway\n"
            "AccountingStorageType = accounting_storage/slurmdbd\n"
            "ProctrackType = proctrack/cgroup\nTaskPlugin = task/cgroup,task/affinity\n"
            f"AccountingStorageTRES = {self.tracked}\n"
        )
        text = {
            "partition": f"PartitionName=main {self.entry}\n",
            "reservation": "No reservations in the system\n",
            "assoc_mgr": "Current Association Manager state\n",
            "config": config,
        }[words[1]]
        return Completed(0, text.encode(), "")

    def _scancel(self, call: Call) -> Completed:
        if refused := self._unreachable(call):
            return refused
        for job in self.jobs:
            if str(job.id) in call.words and job.state in ("PENDING", "RUNNING"):
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


def _session(job: FakeJob, name: str) -> str:
    """The path of a file in the folder of a session."""
    return f"/home/{job.user}/.slipway/sessions/{job.name}/{name}"


def _lines(text: str, records: list[dict[str, Any]]) -> Completed:
    """Records in the format of squeue and sinfo: fields, each with what follows it."""
    fields = [field.partition(":")[::2] for field in text.split(",")]
    lines = ["".join(f"{record[name]}{end}" for name, end in fields) for record in records]
    return Completed(0, "".join(f"{line}\n" for line in lines).encode(), "")
