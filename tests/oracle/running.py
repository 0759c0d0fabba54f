"""Runs cases on a cluster, each twice: with sbatch, and with `slipway sbatch --image=`."""

from __future__ import annotations

import base64
import io
import json
import shlex
import tarfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.oracle import comparing
from tests.oracle.cases import Case
from tests.slurm.batch import OVER, Batch
from tests.support.cluster import Cluster

FOLDER = Path(__file__).parent
BATCH = 15
"""Cases at a time, each of which is two jobs, so that a user's three processors are always busy."""
AT_ONCE = 10
"""Jobs that one command submits."""
SECONDS = 500.0
"""For the jobs of a batch."""
PAUSE = 0.5
IMAGE = "node.sif"
WAYS = ("plain", "image")
END = "'\\036'"
"""What printf(1) writes after each command's output."""


class Run:
    """One case by one way."""

    def __init__(self, case: Case, way: str, home: str) -> None:
        self.case = case
        self.way = way
        self.folder = f"{home}/{case.number}/{way}"
        self.answer: dict[str, Any] = {}
        self.number = ""
        """The job's; "" if it was refused."""
        self.jobs: list[dict[str, Any]] = []
        """What scontrol shows of it after its end, of an array for each task."""
        self.records = ""
        """sacct's lines about it."""
        self.unsent = list(case.signals)
        self.sent = 0.0
        """When the last signals were sent (time.monotonic)."""
        self.knows_end = not case.signals
        """Whether the job knows that it gets no more signals."""

    def submission(self, image: str) -> dict[str, Any]:
        """What on_login.py submits."""
        case = self.case
        words = ["sbatch"] if self.way == "plain" else ["slipway", "sbatch", f"--image={image}"]
        words += ["--parsable", "--mem=150M", "--time=5", *case.options]
        if case.way == "wrap":
            words.append(f"--wrap={case.script}")
        elif case.way != "pipe":
            file = f"./{case.file}" if case.way == "file" else "/dev/stdin"
            words += [file, *case.arguments]
        piped = case.way in ("pipe", "name")
        return {
            "folder": self.folder,
            "argv": words,
            "environment": {
                name: value.replace("{folder}", self.folder) for name, value in case.environment
            },
            "stdin": f"{self.folder}/{case.file}" if piped else "",
            "mask": case.mask,
        }


class Oracle:
    """Runs cases as one user of a cluster, in a folder of their own."""

    def __init__(self, cluster: Cluster, user: str = "alice") -> None:
        self.cluster = cluster
        self.batch = Batch(cluster, user, folder="oracle")
        self.image = f"{self.batch.folder}/{IMAGE}"
        self.batch.write("on_login.py", (FOLDER / "on_login.py").read_text(encoding="utf-8"))

    def make_image(self) -> None:
        """Build the image from a node's own files, on that node."""
        place = "/var/tmp/oracle"
        user, target = self.batch.user, shlex.quote(self.image)
        build = (
            f"rm -rf {place} && mkdir {place} && cat > {place}/node.def && cd {place} && "
            f"APPTAINER_TMPDIR={place} APPTAINER_CACHEDIR={place} "
            "apptainer --silent build --mksquashfs-args '-comp zstd -Xcompression-level 1' "
            "node.sif node.def && "
            f"install -o {user} -g {user} -m 644 node.sif {target}; "
            f"code=$?; rm -rf {place}; exit $code"
        )
        text = (FOLDER / "node.def").read_text(encoding="utf-8")
        self.cluster.run("n1", "sh", "-c", build, stdin=text, seconds=600)

    def clean(self) -> None:
        """Cancel all jobs and delete the folder."""
        self.batch.clean()

    def run(self, cases: Sequence[Case]) -> dict[int, list[comparing.Difference]]:
        """The differences of each case, by its number."""
        by_number = {}
        for start in range(0, len(cases), BATCH):
            some = cases[start : start + BATCH]
            runs = [Run(case, way, self.batch.folder) for case in some for way in WAYS]
            outcomes = self._outcomes(runs)
            for number, case in enumerate(some):
                plain, imaged = outcomes[2 * number : 2 * number + 2]
                by_number[case.number] = comparing.differences(plain, imaged)
            self._delete(runs)
        return by_number

    def _outcomes(self, runs: Sequence[Run]) -> list[dict[str, str]]:
        self._write(runs)
        orders = [run.submission(self.image) for run in runs]
        parts = [orders[at : at + AT_ONCE] for at in range(0, len(orders), AT_ONCE)]
        answers = [answer for part in parts for answer in self._on_login("submit", part)]
        for run, answer in zip(runs, answers, strict=True):
            run.answer = answer
            words = answer["out"].split()
            run.number = words[-1].partition(";")[0] if answer["code"] == 0 and words else ""
        self._accompany([run for run in runs if run.number])
        listings = self._on_login("files", [run.folder for run in runs])
        return [self._outcome(run, listing) for run, listing in zip(runs, listings, strict=True)]

    def _outcome(self, run: Run, listing: dict[str, Any]) -> dict[str, str]:
        numbers = frozenset({run.number, *(str(job["job_id"]) for job in run.jobs)} - {""})
        common = comparing.Common(run.folder, numbers)
        outcome = comparing.submission(run.answer, common) | comparing.files(listing, common)
        if run.number:
            outcome |= comparing.record(run.records, run.number, common)
            outcome |= comparing.controller(run.jobs, common)
        return outcome

    def _look_up(self, runs: Sequence[Run]) -> None:
        """Read what Slurm knows of jobs that are over, in one command for all of them."""
        if not runs:
            return
        fields = ",".join(("JobID", *comparing.RECORD))
        each = (
            f'shown=$(scontrol show job {run.number} --json) && printf %s "$shown"; printf {END}; '
            f"sacct --noheader --parsable2 --format={fields} -j {run.number}; printf {END}"
            for run in runs
        )
        parts = self.batch.shell("; ".join(each)).stdout.split("\036")[:-1]
        assert len(parts) == 2 * len(runs), parts
        for run, shown, records in zip(runs, parts[::2], parts[1::2], strict=True):
            run.jobs = json.loads(shown)["jobs"] if shown else []
            run.records = records

    def _write(self, runs: Iterable[Run]) -> None:
        """The folders of runs, each with its script and the files that options name."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
            for run in runs:
                base = f"{run.case.number}/{run.way}"
                for folder in ("sub", "tmp"):
                    info = tarfile.TarInfo(f"{base}/{folder}")
                    info.type, info.mode = tarfile.DIRTYPE, 0o755
                    archive.addfile(info)
                for name, text in ((run.case.file, run.case.script), ("input.txt", "typed\n")):
                    data = text.encode()
                    info = tarfile.TarInfo(f"{base}/{name}")
                    info.size, info.mode = len(data), 0o755
                    archive.addfile(info, io.BytesIO(data))
        text = base64.b64encode(out.getvalue()).decode("ascii")
        unpacked = self.batch.shell("base64 -d | tar -xz", stdin=text)
        assert unpacked.returncode == 0, unpacked.stderr

    def _on_login(self, action: str, items: list[Any]) -> list[Any]:
        answer = self.batch.shell(f"python3 on_login.py {action}", stdin=json.dumps(items))
        assert answer.returncode == 0, answer.stderr
        answers: list[Any] = json.loads(answer.stdout)
        return answers

    def _accompany(self, runs: Sequence[Run]) -> None:
        """Send the jobs their signals, and wait until accounting has their ends."""
        deadline = time.monotonic() + SECONDS
        waiting = list(runs)
        while waiting:
            if time.monotonic() > deadline:
                numbers = " ".join(run.number for run in waiting)
                self.batch.shell(f"scancel {numbers}")
                raise AssertionError(f"these jobs did not end within {SECONDS:g} s: {numbers}")
            self._signal([run for run in waiting if not run.knows_end])
            over = self._over(waiting)
            time.sleep(PAUSE)
            self._look_up([run for run in waiting if run.number in over])
            waiting = [run for run in waiting if run.number not in over]

    def _signal(self, runs: Iterable[Run]) -> None:
        for run in runs:
            if not run.unsent:
                if time.monotonic() - run.sent > 2 * PAUSE:
                    self.batch.shell("touch over", folder=run.folder)
                    run.knows_end = True
                continue
            if self.batch.shell("ls ready", folder=run.folder).returncode != 0:
                continue
            names = run.unsent if run.case.burst else run.unsent[:1]
            run.unsent = run.unsent[len(names) :]
            sends = [f"scancel {run.case.to} --signal={name} {run.number}" for name in names]
            self.batch.shell("; ".join(sends))
            run.sent = time.monotonic()

    def _over(self, runs: Iterable[Run]) -> set[str]:
        """The numbers of the jobs of which nothing runs or waits any more."""
        numbers = [run.number for run in runs]
        over = {number: [] for number in numbers}  # type: dict[str, list[bool]]
        argv = f"sacct --noheader -X --parsable2 --format=JobID,State,End -j {','.join(numbers)}"
        for line in self.batch.shell(argv).stdout.splitlines():
            job, state, end = line.split("|")
            number = job.partition("_")[0]
            if number in over:
                over[number].append(state.split()[0] in OVER and end != "Unknown")
        return {number for number, ends in over.items() if ends and all(ends)}

    def _delete(self, runs: Iterable[Run]) -> None:
        folders = {run.folder.rpartition("/")[0] for run in runs}
        self.batch.shell(f"chmod -R u+rwx {shlex.join(folders)}; rm -rf {shlex.join(folders)}")
